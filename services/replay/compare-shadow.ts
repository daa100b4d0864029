import { Fault } from "../../schemas/faults.ts";
import type { Tx } from "../platform/postgres.ts";
import type { AlignOptions } from "./align.ts";
import { withAligned } from "./align.ts";
import type { ComparedTable, TableDifference } from "./compare-tables.ts";
import { compareTables } from "./compare-tables.ts";
import { quote } from "./run-schemas.ts";
import type { LogRange, RunNames, StoredDifference } from "./shadow.ts";

/** A shadow beside what it is compared with. */
export interface ShadowDifference {
  readonly comparedWith: "live" | "baseline";
  readonly ranges: readonly LogRange[];
  readonly tables: readonly TableDifference[];
  /** Records set aside by one side and understood by the other, as `topic/partition@offset`. */
  readonly newLetters: readonly string[];
  readonly goneLetters: readonly string[];
  readonly isEmpty: boolean;
}

export interface CompareOptions extends AlignOptions {
  readonly candidate: RunNames;
  readonly baseline: RunNames;
  readonly tables: readonly ComparedTable[] | null;
  readonly samples: number;
}

/** Compares a shadow that is done with the live projection, or with its baseline, at the same offsets. */
export async function compareShadow(options: CompareOptions): Promise<ShadowDifference> {
  const { shadow, database, candidate, baseline } = options;
  if (shadow.state === "promoted")
    throw new Fault("USAGE", `\`${shadow.name}\` is promoted: it is the live projection now`);
  if (shadow.comparedWith === "live") {
    const live = { projection: shadow.processor, host: "host" };
    return withAligned(options, (snapshot, ranges) =>
      compareSides(snapshot, options, live, candidate, ranges),
    );
  }
  await options.runs.reach(shadow.ranges);
  return database.transaction(async (snapshot) => {
    await snapshot.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    return compareSides(snapshot, options, baseline, candidate, shadow.ranges);
  });
}

async function compareSides(
  tx: Tx,
  { shadow, tables, samples }: CompareOptions,
  live: Pick<RunNames, "projection" | "host">,
  candidate: RunNames,
  ranges: readonly LogRange[],
): Promise<ShadowDifference> {
  const schemas = { live: live.projection, shadow: candidate.projection };
  const found = await compareTables(tx, schemas, tables, samples);
  const newLetters = await lettersOnlyIn(tx, shadow.processor, candidate.host, live.host, ranges, samples);
  const goneLetters = await lettersOnlyIn(tx, shadow.processor, live.host, candidate.host, ranges, samples);
  const isEmpty =
    newLetters.length + goneLetters.length === 0 &&
    found.every(
      (one) =>
        one.onlyLive +
          one.onlyShadow +
          one.changed +
          one.columnsOnlyLive.length +
          one.columnsOnlyShadow.length ===
        0,
    );
  return { comparedWith: shadow.comparedWith, ranges, tables: found, newLetters, goneLetters, isEmpty };
}

/** What is kept of a comparison, and accepted. */
export function toStored(difference: ShadowDifference): StoredDifference {
  return {
    tables: difference.tables.map(({ table, onlyLive, onlyShadow, changed }) => ({
      table,
      onlyLive,
      onlyShadow,
      changed,
    })),
    newLetters: difference.newLetters.length,
  };
}

async function lettersOnlyIn(
  tx: Tx,
  processor: string,
  here: string,
  there: string,
  ranges: readonly LogRange[],
  limit: number,
): Promise<readonly string[]> {
  const { rows } = await tx.query<{ place: string }>(
    `SELECT DISTINCT a.topic || '/' || a.partition || '@' || a.kafka_offset AS place FROM ${quote(here)}.letters AS a
      JOIN unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[]) AS r(topic, partition, from_offset, to_offset)
        ON r.topic = a.topic AND r.partition = a.partition AND a.kafka_offset >= r.from_offset AND a.kafka_offset < r.to_offset
      WHERE a.processor = $1 AND a.redriven_at IS NULL AND NOT EXISTS (SELECT FROM ${quote(there)}.letters AS b
        WHERE b.processor = $1 AND b.topic = a.topic AND b.partition = a.partition AND b.kafka_offset = a.kafka_offset
          AND b.redriven_at IS NULL)
      ORDER BY 1 LIMIT $6`,
    [
      processor,
      ranges.map(({ topic }) => topic),
      ranges.map(({ partition }) => partition),
      ranges.map(({ from }) => from),
      ranges.map(({ to }) => to),
      Math.max(limit, 1_000),
    ],
  );
  return rows.map(({ place }) => place);
}
