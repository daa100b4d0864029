import { Fault } from "../../schemas/faults.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import { approachLive, toLiveRanges } from "./align.ts";
import { fenceLive, loadUnfenced, unfenceLive } from "./live-fence.ts";
import type { OpenRuns } from "./open-runs.ts";
import { loadPositions } from "./positions.ts";
import { closeRunRole, quote } from "./run-schemas.ts";
import type { Actor } from "./shadow-rows.ts";
import { recordAct, saveRanges, setState } from "./shadow-rows.ts";
import type { RunNames, Shadow, StoredDifference } from "./shadow.ts";
import { keyOf } from "./shadow.ts";
import { swapSchemas } from "./swap-schemas.ts";

/** Evidence is added to and never rebuilt: what stands in the trail is what was recorded when it happened. */
const neverPromoted: ReadonlySet<string> = new Set(["audit"]);

/** How long the live processor may stand still while its shadow reads the last records. */
const fencedMaxMs = 60_000;
/** A reader of a view makes the swap wait, and everybody behind it: rather later again. */
const lockTimeout = "5s";
const swapAttempts = 6;

export interface PromoteOptions {
  readonly database: Database;
  readonly shadow: Shadow;
  readonly names: RunNames;
  readonly runs: OpenRuns;
  readonly actor: Actor;
  /** Tables that belong to the live run; null: there are none. */
  readonly carried: readonly string[];
  /** The version that the running hosts say they are; null: none has ever run. */
  readonly liveVersion: string | null;
  /** Rows of records before the shadow's beginning are given up. */
  readonly withoutOlder: boolean;
  /** Compares once more, before anything is stopped. */
  readonly compare: () => Promise<StoredDifference>;
  readonly signal: AbortSignal;
}

/** Throws USAGE, naming what has to be done first. */
export function assertPromotable(shadow: Shadow, liveVersion: string | null, withoutOlder: boolean): void {
  const refuse = (why: string): never => {
    throw new Fault("USAGE", why);
  };
  if (neverPromoted.has(shadow.processor))
    refuse(`\`${shadow.processor}\` is evidence: its tables are never replaced`);
  if (shadow.state === "promoted") refuse(`\`${shadow.name}\` is promoted already`);
  if (shadow.state === "running")
    refuse(`\`${shadow.name}\` is not done; \`fabric replay start\` goes on with it`);
  if (shadow.comparedWith === "baseline")
    refuse(
      `\`${shadow.name}\` holds a part of the log; a shadow that is promoted reads all of it: start one without --from and --to`,
    );
  if (shadow.difference === null) refuse(`compare it first: \`fabric replay diff ${shadow.name}\``);
  if (shadow.acceptedAt === null)
    refuse(`nobody has accepted the difference: \`fabric replay accept ${shadow.name} --reason …\``);
  if (shadow.versionFile !== null && shadow.processorVersion === liveVersion)
    refuse(
      `the new code says that it is version \`${shadow.processorVersion}\`, as the running one does: hosts of the old code would go on writing; raise \`version\` in defineProcessor`,
    );
  const late = shadow.ranges.find(({ from }) => from > 0n);
  if (late !== undefined && !withoutOlder)
    refuse(
      `${keyOf(late)} is read from ${String(late.from)} on: rows of earlier records would be gone; --without-older gives them up`,
    );
}

/**
 * Puts a shadow's tables in the place of the live ones: comes close while the live processor runs, stops it in all its
 * hosts, reads the rest up to the same offsets, and swaps in one transaction. Whatever fails before that leaves the live
 * processor going on as before. Inbox and watermarks stay: at equal offsets they say the same of both.
 * INVARIANT: test/integration/replay-promote.test.ts "loses and doubles nothing while events come".
 */
export async function promote(options: PromoteOptions): Promise<{ readonly stoppedMs: number }> {
  const { database, shadow, names, runs, signal } = options;
  assertPromotable(shadow, options.liveVersion, options.withoutOlder);
  const align = { database, runs, shadow, signal };
  refuseGrowth(shadow.difference, await options.compare());
  await analyze(database, names.projection);
  const near = await approachLive(align);
  await runs.warmUp(near);
  await runs.reach(near);
  const startedMs = performance.now();
  await fenceLive(database, shadow.processor, shadow.name);
  try {
    const live = await loadPositions(database, "host", shadow.processor);
    const ranges = toLiveRanges(shadow.ranges, live);
    await runs.reach(ranges, fencedMaxMs);
    await saveRanges(database, shadow.name, ranges);
    await runs.close();
    for (let attempt = 1; ; attempt += 1) {
      try {
        await database.transaction((tx) => swap(tx, options));
        break;
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== "DATABASE_CONFLICT" || attempt === swapAttempts)
          throw error;
      }
    }
  } catch (error) {
    await unfenceLive(database, shadow.processor, shadow.name);
    throw error;
  }
  return { stoppedMs: performance.now() - startedMs };
}

async function swap(tx: Tx, options: PromoteOptions): Promise<void> {
  const { shadow, names, actor, carried, liveVersion } = options;
  await tx.query(`SET LOCAL lock_timeout = '${lockTimeout}'`);
  // Nobody takes a new partition up meanwhile.
  await tx.query("LOCK TABLE host.watermarks IN SHARE ROW EXCLUSIVE MODE");
  await refuseRedrives(tx, shadow.processor);
  const unfenced = await loadUnfenced(tx, shadow.processor);
  const live = await loadPositions(tx, "host", shadow.processor);
  const own = await loadPositions(tx, names.host, shadow.processor);
  const apart = [...live].filter(([key, at]) => own.get(key) !== at).map(([key]) => key);
  if (unfenced.length + apart.length > 0)
    throw new Fault(
      "DATABASE_UNAVAILABLE",
      `${[...unfenced, ...apart].join(", ")} moved while the shadow took its place; try again`,
    );
  await settleLetters(tx, shadow, names);
  for (const table of carried)
    await tx.query(`LOCK TABLE ${quote(shadow.processor)}.${quote(table)} IN SHARE MODE`);
  await closeRunRole(tx, names);
  await swapSchemas(tx, shadow.processor, names.projection, carried);
  const waitsFor =
    liveVersion === null || shadow.processorVersion === liveVersion
      ? null
      : `promoted:${shadow.processorVersion}`;
  await unfenceLive(tx, shadow.processor, shadow.name, waitsFor);
  await setState(tx, shadow.name, "promoted");
  await recordAct(tx, actor, {
    shadow: shadow.name,
    act: "promoted",
    detail: {
      processor: shadow.processor,
      version: shadow.processorVersion,
      positions: Object.fromEntries([...own].map(([key, at]) => [key, String(at)])),
    },
  });
}

/** A letter on its way goes by no watermark, so no fence holds it: its row would stay in the tables of before. */
async function refuseRedrives(tx: Tx, processor: string): Promise<void> {
  await tx.query("LOCK TABLE host.redrives IN SHARE ROW EXCLUSIVE MODE");
  const open = await tx.query(
    "SELECT FROM host.redrives WHERE processor = $1 AND finished_at IS NULL LIMIT 1",
    [processor],
  );
  if (open.rowCount > 0)
    throw new Fault("USAGE", `letters of \`${processor}\` are being redriven; promote when that is done`);
}

/**
 * What the shadow set aside and the live one did not would be in neither projection nor letters; what the live one set aside
 * and the shadow understood is done.
 */
async function settleLetters(tx: Tx, shadow: Shadow, names: RunNames): Promise<void> {
  const own = `${quote(names.host)}.letters`;
  const { rows } = await tx.query<{ place: string }>(
    `SELECT s.topic || '/' || s.partition || '@' || s.kafka_offset AS place FROM ${own} AS s
      WHERE NOT EXISTS (SELECT FROM host.letters AS l WHERE l.processor = s.processor AND l.topic = s.topic
        AND l.partition = s.partition AND l.kafka_offset = s.kafka_offset AND l.redriven_at IS NULL)
      ORDER BY 1 LIMIT 5`,
  );
  if (rows.length > 0)
    throw new Fault(
      "USAGE",
      `the shadow set records aside that the live one processed (${rows.map(({ place }) => place).join(", ")}): they would be lost; mend the version`,
    );
  await tx.query(
    `UPDATE host.letters AS l SET archived_at = clock_timestamp(), archived_by = $2
      WHERE l.processor = $1 AND l.redriven_at IS NULL AND l.archived_at IS NULL
        AND NOT EXISTS (SELECT FROM ${own} AS s WHERE s.topic = l.topic AND s.partition = l.partition
          AND s.kafka_offset = l.kafka_offset)`,
    [shadow.processor, `replay promote ${shadow.name}`],
  );
}

/** A kind of difference that was none when it was accepted is one that nobody has accepted. */
function refuseGrowth(accepted: StoredDifference | null, now: StoredDifference): void {
  const before = new Map(accepted?.tables.map((one) => [one.table, one]));
  const grown = now.tables.flatMap((one) => {
    const was = before.get(one.table);
    return (["onlyLive", "onlyShadow", "changed"] as const)
      .filter((kind) => one[kind] > 0 && (was?.[kind] ?? 0) === 0)
      .map((kind) => `${one.table}: ${String(one[kind])} ${words[kind]}`);
  });
  if (now.newLetters > (accepted?.newLetters ?? 0)) grown.push(`${String(now.newLetters)} records set aside`);
  if (grown.length === 0) return;
  throw new Fault(
    "USAGE",
    `the difference is another one than was accepted (${grown.join(", ")}); look at it with \`fabric replay diff\` and accept it`,
  );
}
const words = { onlyLive: "only live", onlyShadow: "only in the shadow", changed: "changed" } as const;

/** Plans that were made for empty tables must not meet the first events after the swap. */
async function analyze(database: Database, schema: string): Promise<void> {
  const { rows } = await database.query<{ name: string }>(
    "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = $1",
    [schema],
  );
  for (const { name } of rows) await database.query(`ANALYZE ${name}`);
}
