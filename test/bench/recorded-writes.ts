import type { Client } from "pg";
import pg from "pg";
import { serverCpuMsOf } from "./process-use.ts";

/** Most decisions that are kept in memory to be written again. */
const maxDecisions = 20_000;

/** A table that the gate wrote to, and its rows as text, by transaction. */
interface RecordedTable {
  readonly schema: string;
  readonly table: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly keyColumns: readonly string[];
  /** The gate changes rows of it: they are written as an upsert. */
  readonly upsert: boolean;
  readonly byTransaction: ReadonlyMap<string, (string | null)[][]>;
}

/** What a stretch of the gate's work put into the database. */
export interface RecordedWrites {
  readonly tables: readonly RecordedTable[];
  /** Transactions in order; the decisions of each. */
  readonly groups: readonly { readonly transaction: string; readonly decisions: number }[];
  readonly decisions: number;
  /** Rows that are there, of all tables, for each decision. */
  readonly rowsPerDecision: number;
  readonly bytesPerDecision: number;
}

/** The next transaction id: everything written from now on has this one or a later one. */
export async function markTransaction(admin: Client): Promise<bigint> {
  const { rows } = await admin.query<{ xid: string }>("SELECT pg_current_xact_id()::text AS xid");
  return BigInt(rows[0]?.xid ?? "0");
}

/** Rows inserted and updated so far by table, as the server counts them. */
export async function countWrites(admin: Client): Promise<ReadonlyMap<string, number>> {
  const { rows } = await admin.query<{ name: string; writes: string }>(
    "SELECT schemaname || '.' || relname AS name, (n_tup_ins + n_tup_upd)::text AS writes FROM pg_stat_user_tables",
  );
  return new Map(rows.map(({ name, writes }) => [name, Number(writes)]));
}

/** Reads back what was written since the mark. */
export async function recordWrites(admin: Client, since: bigint): Promise<RecordedWrites> {
  const found = await admin.query<{ schema: string; table: string; updates: string }>(
    `SELECT schemaname AS schema, relname AS "table", n_tup_upd::text AS updates FROM pg_stat_user_tables
     WHERE schemaname NOT IN ('bench', 'floor', 'migrations') ORDER BY 1, 2`,
  );
  const grouped = await admin.query<{ xid: string; decisions: number }>(
    `SELECT xmin::text AS xid, count(*)::int AS decisions FROM gate.decisions
     WHERE xmin::text::bigint >= $1 GROUP BY 1 ORDER BY xmin::text::bigint`,
    [since],
  );
  const groups: { transaction: string; decisions: number }[] = [];
  let decisions = 0;
  for (const group of grouped.rows) {
    if (decisions >= maxDecisions) break;
    groups.push({ transaction: group.xid, decisions: group.decisions });
    decisions += group.decisions;
  }
  const last = groups.at(-1)?.transaction ?? "0";
  const tables: RecordedTable[] = [];
  let rowsWritten = 0;
  let bytesWritten = 0;
  for (const { schema, table, updates } of found.rows) {
    const name = `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(table)}`;
    const counted = await admin.query<{ rows: number; bytes: string | null }>(
      `SELECT count(*)::int AS rows, sum(pg_column_size(t.*))::text AS bytes FROM ${name} t
       WHERE xmin::text::bigint BETWEEN $1 AND $2`,
      [since, last],
    );
    const rows = counted.rows[0]?.rows ?? 0;
    if (rows === 0) continue;
    rowsWritten += rows;
    bytesWritten += Number(counted.rows[0]?.bytes ?? 0);
    const columns = await admin.query<{ name: string; type: string }>(
      `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
       WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attidentity = '' AND attgenerated = ''
       ORDER BY attnum`,
      [name],
    );
    const keys = await admin.query<{ name: string }>(
      `SELECT a.attname AS name FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
       WHERE i.indrelid = $1::regclass AND i.indisprimary`,
      [name],
    );
    const list = columns.rows.map((column) => `${pg.escapeIdentifier(column.name)}::text`).join(", ");
    const read = await admin.query<(string | null)[]>({
      text: `SELECT xmin::text, ${list} FROM ${name} WHERE xmin::text::bigint BETWEEN $1 AND $2`,
      values: [since, last],
      rowMode: "array",
    });
    const byTransaction = new Map<string, (string | null)[][]>();
    for (const [transaction, ...values] of read.rows) {
      const list = byTransaction.get(transaction ?? "") ?? [];
      list.push(values);
      byTransaction.set(transaction ?? "", list);
    }
    tables.push({
      schema,
      table,
      columns: columns.rows,
      keyColumns: keys.rows.map((key) => key.name),
      upsert: Number(updates) > 0,
      byTransaction,
    });
  }
  return {
    tables,
    groups,
    decisions,
    rowsPerDecision: rowsWritten / decisions,
    bytesPerDecision: bytesWritten / decisions,
  };
}

/** Copies of the written tables, with their indexes, in schema `floor`. */
export async function createFloor(admin: Client, writes: RecordedWrites): Promise<void> {
  await admin.query("DROP SCHEMA IF EXISTS floor CASCADE; CREATE SCHEMA floor");
  for (const table of writes.tables)
    await admin.query(
      `CREATE TABLE ${floorName(table)} (LIKE ${pg.escapeIdentifier(table.schema)}.${pg.escapeIdentifier(table.table)} INCLUDING ALL)`,
    );
}

/** One statement for one group: the rows of all tables, committed together. No lock, no question, no answer. */
function toStatement(writes: RecordedWrites): string {
  let parameter = 0;
  const parts = writes.tables.map((table, index) => {
    const columns = table.columns.map(({ name }) => pg.escapeIdentifier(name));
    const arrays = table.columns.map(() => `$${String((parameter += 1))}::text[]`);
    const casts = table.columns.map(({ name, type }) => `r.${pg.escapeIdentifier(name)}::${type}`);
    const changed = table.columns
      .filter(({ name }) => !table.keyColumns.includes(name))
      .map(({ name }) => `${pg.escapeIdentifier(name)} = excluded.${pg.escapeIdentifier(name)}`);
    const conflict =
      table.upsert && changed.length > 0
        ? ` ON CONFLICT (${table.keyColumns.map((name) => pg.escapeIdentifier(name)).join(", ")}) DO UPDATE SET ${changed.join(", ")}`
        : "";
    return `t${String(index)} AS (INSERT INTO ${floorName(table)} (${columns.join(", ")})
      SELECT ${casts.join(", ")} FROM unnest(${arrays.join(", ")}) AS r(${columns.join(", ")})${conflict})`;
  });
  return `WITH ${parts.join(",\n")} SELECT 1`;
}

/** The same rows with each decision committed by itself, as a server would do it that shares no commit. */
export function oneByOne(writes: RecordedWrites): RecordedWrites {
  const parts = writes.groups.flatMap(({ transaction, decisions }) =>
    Array.from({ length: decisions }, (_, at) => ({ transaction, decisions, at })),
  );
  const name = (transaction: string, at: number): string => `${transaction}/${String(at)}`;
  return {
    ...writes,
    groups: parts.map(({ transaction, at }) => ({ transaction: name(transaction, at), decisions: 1 })),
    tables: writes.tables.map((table) => ({
      ...table,
      byTransaction: new Map(
        parts.map(({ transaction, decisions, at }) => {
          const rows = table.byTransaction.get(transaction) ?? [];
          const from = Math.floor((rows.length * at) / decisions);
          const to = Math.floor((rows.length * (at + 1)) / decisions);
          return [name(transaction, at), rows.slice(from, to)];
        }),
      ),
    })),
  };
}

/** What Postgres alone can do. */
export interface FloorResult {
  readonly perSecond: number;
  /** The server's processor time for each decision, in microseconds. */
  readonly serverMicros: number;
}

const floorApplication = "fabric-bench-floor";

/** The recorded groups again and again for `seconds`, by `writers` connections. */
export async function replayWrites(
  url: string,
  admin: Client,
  writes: RecordedWrites,
  writers: number,
  seconds: number,
): Promise<FloorResult> {
  const text = toStatement(writes);
  const parameters = writes.groups.map(({ transaction }) =>
    writes.tables.flatMap((table) => {
      const rows = table.byTransaction.get(transaction) ?? [];
      return table.columns.map((_column, at) => rows.map((row) => row[at] ?? null));
    }),
  );
  const clients = Array.from(
    { length: writers },
    () => new pg.Client({ connectionString: url, application_name: floorApplication }),
  );
  await Promise.all(clients.map((client) => client.connect()));
  let decisions = 0;
  let spentMs = 0;
  try {
    while (spentMs < seconds * 1000) {
      await admin.query(`TRUNCATE ${writes.tables.map(floorName).join(", ")}`);
      const startedMs = performance.now();
      const untilMs = startedMs + seconds * 1000 - spentMs;
      let next = 0;
      await Promise.all(
        clients.map(async (client) => {
          while (next < parameters.length && performance.now() < untilMs) {
            const index = next;
            next += 1;
            await client.query({ name: "floor", text, values: parameters[index] ?? [] });
            decisions += writes.groups[index]?.decisions ?? 0;
          }
        }),
      );
      spentMs += performance.now() - startedMs;
    }
    const serverMs = await serverCpuMsOf(admin, floorApplication);
    return { perSecond: (decisions / spentMs) * 1000, serverMicros: (serverMs / decisions) * 1000 };
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

function floorName({ schema, table }: Pick<RecordedTable, "schema" | "table">): string {
  return `floor.${pg.escapeIdentifier(`${schema}_${table}`)}`;
}
