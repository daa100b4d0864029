import { createHash } from "node:crypto";
import { dumpTables as auditTables } from "../../processors/audit/queries.ts";
import { dumpTables as breakerTables } from "../../processors/breaker/queries.ts";
import { dumpTables as costTables } from "../../processors/cost/queries.ts";
import { dumpTables as evalTables } from "../../processors/eval/queries.ts";
import { dumpTables as takeoverTables } from "../../processors/takeover/queries.ts";
import { dumpTables as traceTables } from "../../processors/trace/queries.ts";
import type { Database } from "../../services/platform/postgres.ts";

interface DumpTable {
  readonly table: string;
  readonly orderBy: string;
  /** Columns that tell of one run: where an event stands in the log. */
  readonly without?: readonly string[];
}

/** Schema of each projection and the tables that have to be equal. */
export const projections: Readonly<Record<string, readonly DumpTable[]>> = {
  audit: auditTables,
  breaker: breakerTables,
  cost: costTables,
  eval: evalTables,
  takeover: takeoverTables,
  trace: [
    ...traceTables,
    {
      table: "deliveries",
      orderBy: "tenant_id, correlation_id, event_id",
      without: [
        ...["destination", "partition", "kafka_offset", "published_at", "received_at", "projected_at"],
        ...["batch_messages", "batch_id"],
      ],
    },
  ],
};

/** Rows of one table as text, in order. */
export interface Dump {
  readonly table: string;
  readonly digest: string;
  readonly rows: readonly string[];
}

/** All tables of all projections. */
export async function dumpAll(sql: Database): Promise<readonly Dump[]> {
  const dumps: Dump[] = [];
  for (const [schema, tables] of Object.entries(projections)) {
    for (const { table, orderBy, without = [] } of tables) {
      const { rows } = await sql.query<{ row: string }>(
        `SELECT (to_jsonb(t) - $1::text[])::text AS row FROM ${schema}.${table} AS t ORDER BY ${orderBy}`,
        [without],
      );
      const lines = rows.map(({ row }) => row);
      dumps.push({
        table: `${schema}.${table}`,
        digest: createHash("sha256").update(lines.join("\n")).digest("hex"),
        rows: lines,
      });
    }
  }
  return dumps;
}

/** The first row of each table that is not the same, with the columns that differ; empty when all tables are equal. */
export function differences(clean: readonly Dump[], other: readonly Dump[]): readonly string[] {
  return clean.flatMap((one, nth) => {
    const theirs = other[nth];
    if (theirs?.digest === one.digest) return [];
    const there = new Set(theirs?.rows);
    const here = new Set(one.rows);
    const missing = one.rows.filter((row) => !there.has(row));
    const surplus = (theirs?.rows ?? []).filter((row) => !here.has(row));
    const counts = `${one.table}: ${String(one.rows.length)} rows in the clean run, ${String(theirs?.rows.length ?? 0)} here, ${String(missing.length)} are not the same`;
    return [`${counts}\n${describe(missing[0], surplus[0])}`];
  });
}

function describe(missing: string | undefined, surplus: string | undefined): string {
  const expected = (missing === undefined ? {} : JSON.parse(missing)) as Record<string, unknown>;
  const found = (surplus === undefined ? {} : JSON.parse(surplus)) as Record<string, unknown>;
  const names = [...new Set([...Object.keys(expected), ...Object.keys(found)])];
  const columns = names.filter((name) => JSON.stringify(expected[name]) !== JSON.stringify(found[name]));
  return [
    `  clean: ${missing ?? "no such row"}`,
    `  here:  ${surplus ?? "no such row"}`,
    `  differ: ${columns.join(", ")}`,
  ].join("\n");
}
