import type { Tx } from "../platform/postgres.ts";
import { quote } from "./run-schemas.ts";
import type { LogRange } from "./shadow.ts";
import { keyOf } from "./shadow.ts";

/** Next offset per `topic/partition`. */
export type Positions = ReadonlyMap<string, bigint>;

/** How far a processor has read; `hostSchema` is `host`, or that of a run. */
export async function loadPositions(
  tx: Tx,
  hostSchema: string,
  processor: string,
  lock: "free" | "held" = "free",
): Promise<Positions> {
  const { rows } = await tx.query<{ topic: string; partition: number; next_offset: bigint }>(
    `SELECT topic, partition, next_offset FROM ${quote(hostSchema)}.watermarks WHERE processor = $1
      ORDER BY topic, partition ${lock === "held" ? "FOR UPDATE" : ""}`,
    [processor],
  );
  return new Map(rows.map((row) => [keyOf(row), row.next_offset]));
}

/** Why partitions of a run stand still: gaps that a person has to look at. */
export async function loadStops(tx: Tx, hostSchema: string, processor: string): Promise<readonly string[]> {
  const { rows } = await tx.query<{ topic: string; partition: number; stopped_cause: string }>(
    `SELECT topic, partition, stopped_cause FROM ${quote(hostSchema)}.watermarks
      WHERE processor = $1 AND stopped_cause IS NOT NULL ORDER BY topic, partition`,
    [processor],
  );
  return rows.map((row) => `${keyOf(row)}: ${row.stopped_cause}`);
}

/** Sets where each partition of a run begins; one that has begun stays where it is. */
export async function placeRun(
  tx: Tx,
  hostSchema: string,
  processor: string,
  ranges: readonly LogRange[],
): Promise<void> {
  await tx.query(
    `INSERT INTO ${quote(hostSchema)}.watermarks (processor, topic, partition, next_offset, owner)
      SELECT $1, topic, partition, from_offset, 'replay'
      FROM unnest($2::text[], $3::int[], $4::bigint[]) AS r(topic, partition, from_offset)
      ON CONFLICT DO NOTHING`,
    [
      processor,
      ranges.map(({ topic }) => topic),
      ranges.map(({ partition }) => partition),
      ranges.map(({ from }) => from),
    ],
  );
}

/** Records that a run has behind it, of all in its ranges. */
export function toProgress(
  ranges: readonly LogRange[],
  positions: Positions,
): { readonly done: bigint; readonly all: bigint } {
  let done = 0n;
  let all = 0n;
  for (const range of ranges) {
    const at = positions.get(keyOf(range)) ?? range.from;
    all += range.to - range.from;
    done += (at > range.to ? range.to : at < range.from ? range.from : at) - range.from;
  }
  return { done, all };
}

/** Whether everything in the ranges is read. */
export const isReached = (ranges: readonly LogRange[], positions: Positions): boolean =>
  ranges.every((range) => (positions.get(keyOf(range)) ?? range.from) >= range.to);
