import { setTimeout as sleep } from "node:timers/promises";
import { Fault } from "../../schemas/faults.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import type { OpenRuns } from "./open-runs.ts";
import type { Positions } from "./positions.ts";
import { loadPositions, toProgress } from "./positions.ts";
import { saveRanges } from "./shadow-rows.ts";
import type { LogRange, Shadow } from "./shadow.ts";
import { keyOf } from "./shadow.ts";

/** The live processor waits while a shadow reads no more than this; its own statements give up after thirty seconds. */
const heldMaxRecords = 20_000n;
const heldMaxMs = 15_000;
/** How often a shadow tries to come close to a live processor that goes on meanwhile. */
const rounds = 20;
const liveWaitMs = 60_000;
const pollMs = 200;

export interface AlignOptions {
  /** May run for as long as a comparison takes. */
  readonly database: Database;
  readonly runs: OpenRuns;
  readonly shadow: Shadow;
  readonly signal: AbortSignal;
}

/**
 * The ranges of a shadow, ended where the live processor stands. A partition that the live one took up since then is read
 * from its first offset.
 */
export function toLiveRanges(ranges: readonly LogRange[], live: Positions): readonly LogRange[] {
  const known = new Map(ranges.map((range) => [keyOf(range), range]));
  const grown = ranges.map((range) => ({ ...range, to: live.get(keyOf(range)) ?? range.to }));
  const added = [...live].flatMap(([key, to]) => {
    if (known.has(key)) return [];
    const slash = key.lastIndexOf("/");
    return [{ topic: key.slice(0, slash), partition: Number(key.slice(slash + 1)), from: 0n, to }];
  });
  return [...grown, ...added];
}

/**
 * Brings the shadow to where the live processor stands, while that goes on; returns the ranges that it has read then. A
 * live one that is behind its shadow is waited for.
 */
export async function approachLive({
  database,
  runs,
  shadow,
  signal,
}: AlignOptions): Promise<readonly LogRange[]> {
  let ranges = shadow.ranges;
  const untilMs = performance.now() + liveWaitMs;
  for (let round = 1; ;) {
    signal.throwIfAborted();
    const live = await loadPositions(database, "host", shadow.processor);
    const own = (await runs.positions()).get("candidate") ?? new Map<string, bigint>();
    const ahead = [...own].find(([key, at]) => (live.get(key) ?? 0n) < at && at > fromOf(ranges, key));
    if (ahead !== undefined) {
      if (performance.now() > untilMs)
        throw new Fault(
          "OVERLOADED",
          `the live processor is at ${String(live.get(ahead[0]) ?? 0n)} of ${ahead[0]} and its shadow at ${String(ahead[1])}; let it catch up first`,
        );
      await sleep(pollMs, undefined, { signal });
      continue;
    }
    ranges = toLiveRanges(ranges, live);
    const { done, all } = toProgress(ranges, own);
    if (all - done <= heldMaxRecords || round === rounds) return ranges;
    await saveRanges(database, shadow.name, ranges);
    await runs.reach(ranges);
    round += 1;
  }
}

/**
 * Runs `work` on a snapshot of the database in which shadow and live processor stand at the same offsets. The live one is
 * held at its next commit, not stopped, while the shadow reads what is left; the comparison itself holds nobody.
 */
export async function withAligned<T>(
  options: AlignOptions,
  work: (snapshot: Tx, ranges: readonly LogRange[]) => Promise<T>,
): Promise<T> {
  const { database, runs, shadow } = options;
  let ranges = await approachLive(options);
  const before = await loadPositions(database, "host", shadow.processor);
  await runs.reach(ranges);
  const after = await loadPositions(database, "host", shadow.processor);
  const isBusy = [...after].some(([key, at]) => before.get(key) !== at);
  if (isBusy) await runs.warmUp(ranges);
  return database.transaction(async (snapshot) => {
    await snapshot.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    await database.transaction(async (held) => {
      const live = await loadPositions(held, "host", shadow.processor, "held");
      ranges = toLiveRanges(ranges, live);
      await runs.reach(ranges, heldMaxMs);
      // The first statement of the snapshot fixes what it sees.
      await snapshot.query("SELECT 1");
    });
    await saveRanges(database, shadow.name, ranges);
    return work(snapshot, ranges);
  });
}

function fromOf(ranges: readonly LogRange[], key: string): bigint {
  return ranges.find((range) => keyOf(range) === key)?.from ?? 0n;
}
