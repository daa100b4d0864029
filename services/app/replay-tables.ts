import { dumpTables as auditTables } from "../../processors/audit/queries.ts";
import { dumpTables as breakerTables } from "../../processors/breaker/queries.ts";
import { dumpTables as costTables } from "../../processors/cost/queries.ts";
import { dumpTables as evalTables } from "../../processors/eval/queries.ts";
import { dumpTables as takeoverTables } from "../../processors/takeover/queries.ts";
import { dumpTables as traceTables } from "../../processors/trace/queries.ts";
import type { Tx } from "../platform/postgres.ts";
import type { ComparedTable } from "../replay/compare-tables.ts";

const known: Readonly<Record<string, readonly ComparedTable[]>> = {
  // A place in the log, and the digest over it, are the same when the log is.
  audit: auditTables.map(({ table }) => ({ table })),
  breaker: breakerTables,
  cost: costTables,
  eval: evalTables,
  takeover: takeoverTables,
  trace: traceTables,
};

/** Tables that two runs of a processor are compared by; null: all that it has. */
export function comparedTablesOf(processor: string): readonly ComparedTable[] | null {
  return known[processor] ?? null;
}

/** Tables that tell of the live run alone: they are compared with nothing, and a promotion takes their rows along. */
export async function carriedTablesOf(tx: Tx, processor: string): Promise<readonly string[]> {
  const compared = comparedTablesOf(processor);
  if (compared === null) return [];
  const { rows } = await tx.query<{ name: string }>(
    `SELECT tablename::text AS name FROM pg_tables WHERE schemaname = $1 AND tablename <> ALL ($2::text[]) ORDER BY 1`,
    [processor, compared.map(({ table }) => table)],
  );
  return rows.map(({ name }) => name);
}
