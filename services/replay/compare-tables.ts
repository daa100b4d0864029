import type { Tx } from "../platform/postgres.ts";
import { quote } from "./run-schemas.ts";
import type { TableCounts } from "./shadow.ts";

/** A table that two runs are compared by; without it in this list it belongs to one run alone. */
export interface ComparedTable {
  readonly table: string;
  /** Columns that tell of one run. */
  readonly without?: readonly string[];
}

/** A row that differs: its key, and per column what the live side and the shadow say; null where there is no row. */
export interface RowSample {
  readonly kind: "only_live" | "only_shadow" | "changed";
  readonly key: Readonly<Record<string, string | null>>;
  readonly columns: Readonly<Record<string, readonly [live: string | null, shadow: string | null]>>;
}

export interface TableDifference extends TableCounts {
  readonly samples: readonly RowSample[];
  /** Columns, or the whole table, that one side alone has. */
  readonly columnsOnlyLive: readonly string[];
  readonly columnsOnlyShadow: readonly string[];
}

interface ColumnRow {
  readonly side: "live" | "shadow";
  readonly table_name: string;
  readonly column_name: string;
  readonly type_name: string;
  readonly is_comparable: boolean;
  readonly key_place: number | null;
}
interface DifferenceRow {
  readonly kind: RowSample["kind"];
  readonly n: bigint;
  readonly key: Record<string, string | null> | null;
  readonly columns: Record<string, [string | null, string | null]> | null;
}

/** Memory of one sort or hash; beyond it the server goes to disk, so that a comparison's memory has an end. */
const workMemory = "64MB";
/** Longest text of a column in a sample. */
const sampleMaxChars = 300;

/**
 * Compares tables of two schemas row by row, inside the database: rows meet by primary key, or as whole rows where there is
 * none, and only counts and samples leave it. `tables`: null compares all that either side has.
 */
export async function compareTables(
  tx: Tx,
  schemas: { readonly live: string; readonly shadow: string },
  tables: readonly ComparedTable[] | null,
  samples: number,
): Promise<readonly TableDifference[]> {
  await tx.query(`SET LOCAL work_mem = '${workMemory}'`);
  const all = await loadColumns(tx, schemas);
  const wanted = tables ?? [...new Set(all.map((one) => one.table_name))].sort().map((table) => ({ table }));
  const found: TableDifference[] = [];
  for (const one of wanted) {
    const columns = all.filter((column) => column.table_name === one.table);
    found.push(await compareTable(tx, schemas, one, columns, samples));
  }
  return found;
}

async function compareTable(
  tx: Tx,
  schemas: { readonly live: string; readonly shadow: string },
  { table, without = [] }: ComparedTable,
  columns: readonly ColumnRow[],
  samples: number,
): Promise<TableDifference> {
  const live = columns.filter(({ side }) => side === "live");
  const shadow = new Map(
    columns.filter(({ side }) => side === "shadow").map((one) => [one.column_name, one]),
  );
  const shared = live.filter(({ column_name }) => shadow.has(column_name));
  const names = new Set(shared.map(({ column_name }) => column_name));
  const columnsOnlyLive = live.map(({ column_name }) => column_name).filter((name) => !names.has(name));
  const columnsOnlyShadow = [...shadow.keys()].filter((name) => !names.has(name));
  const key = shared
    .filter(({ key_place }) => key_place !== null)
    .sort((a, b) => (a.key_place ?? 0) - (b.key_place ?? 0))
    .map(({ column_name }) => column_name);
  const compared = shared.filter(({ column_name }) => !without.includes(column_name));
  const toValue =
    (alias: string) =>
    ({ column_name, type_name, is_comparable }: ColumnRow): string => {
      const isSame = is_comparable && shadow.get(column_name)?.type_name === type_name;
      return `${alias}.${quote(column_name)}${isSame ? "" : "::text"}`;
    };
  const places = {
    live: `${quote(schemas.live)}.${quote(table)}`,
    shadow: `${quote(schemas.shadow)}.${quote(table)}`,
  };
  const head = { table, columnsOnlyLive, columnsOnlyShadow };
  if (live.length === 0 || shadow.size === 0) {
    const count = await countRows(tx, live.length === 0 ? places.shadow : places.live);
    return {
      ...head,
      onlyLive: live.length === 0 ? 0 : count,
      onlyShadow: live.length === 0 ? count : 0,
      changed: 0,
      samples: [],
    };
  }
  const isKeyShared =
    key.length > 0 && shared.filter((one) => one.key_place !== null).length === keyWidth(live);
  if (!isKeyShared) return { ...head, ...(await compareWholeRows(tx, places, compared, toValue)) };
  const { rows } = await tx.query<DifferenceRow>(toStatement(places, key, compared, toValue, samples), [
    compared.map(({ column_name }) => column_name),
    sampleMaxChars,
  ]);
  const countOf = (kind: RowSample["kind"]): number => Number(rows.find((row) => row.kind === kind)?.n ?? 0n);
  return {
    ...head,
    onlyLive: countOf("only_live"),
    onlyShadow: countOf("only_shadow"),
    changed: countOf("changed"),
    samples: rows.flatMap(({ kind, key: keyOfRow, columns: cells }) =>
      keyOfRow === null ? [] : [{ kind, key: keyOfRow, columns: cells ?? {} }],
    ),
  };
}

/** One join over both tables; the differing keys are kept by the server, the rows of the samples looked up again. */
function toStatement(
  places: { readonly live: string; readonly shadow: string },
  key: readonly string[],
  compared: readonly ColumnRow[],
  toValue: (alias: string) => (column: ColumnRow) => string,
  samples: number,
): string {
  const keys = key.map(quote);
  const [first = ""] = keys;
  const on = (a: string, b: string): string =>
    keys.map((name) => `${a}.${name} = ${b}.${name}`).join(" AND ");
  const left = compared.map(toValue("l")).join(", ");
  const right = compared.map(toValue("s")).join(", ");
  return `WITH differing AS MATERIALIZED (
      SELECT CASE WHEN s.${first} IS NULL THEN 'only_live' WHEN l.${first} IS NULL THEN 'only_shadow' ELSE 'changed' END AS kind,
        ${keys.map((name) => `coalesce(l.${name}, s.${name}) AS ${name}`).join(", ")}
      FROM ${places.live} AS l FULL JOIN ${places.shadow} AS s ON ${on("l", "s")}
      WHERE l.${first} IS NULL OR s.${first} IS NULL OR ROW(${left}) IS DISTINCT FROM ROW(${right})),
    counted AS (SELECT kind, count(*) AS n FROM differing GROUP BY kind),
    picked AS (SELECT * FROM (
      SELECT *, row_number() OVER (PARTITION BY kind ORDER BY ${keys.join(", ")}) AS place FROM differing) AS d
      WHERE place <= ${String(samples)})
    SELECT c.kind, c.n,
      CASE WHEN p.kind IS NOT NULL THEN jsonb_build_object(${key.map((name) => `'${name.replaceAll("'", "''")}', p.${quote(name)}::text`).join(", ")}) END AS key,
      (SELECT jsonb_object_agg(name, jsonb_build_array(left(a.value, $2), left(b.value, $2)))
        FROM jsonb_each_text(to_jsonb(l)) AS a(name, value) FULL JOIN jsonb_each_text(to_jsonb(s)) AS b(name, value) USING (name)
        WHERE name = ANY ($1::text[]) AND a.value IS DISTINCT FROM b.value) AS columns
    FROM counted AS c LEFT JOIN picked AS p USING (kind)
      LEFT JOIN ${places.live} AS l ON ${on("l", "p")} LEFT JOIN ${places.shadow} AS s ON ${on("s", "p")}
    ORDER BY c.kind, p.place`;
}

/** Rows without a key have no identity: what one side has more often than the other is only on that side. */
async function compareWholeRows(
  tx: Tx,
  places: { readonly live: string; readonly shadow: string },
  compared: readonly ColumnRow[],
  toValue: (alias: string) => (column: ColumnRow) => string,
): Promise<Pick<TableDifference, "onlyLive" | "onlyShadow" | "changed" | "samples">> {
  const columns = compared.map(toValue("t")).join(", ");
  const count = async (a: string, b: string): Promise<number> => {
    const { rows } = await tx.query<{ n: bigint }>(
      `SELECT count(*) AS n FROM (SELECT ${columns} FROM ${a} AS t EXCEPT ALL SELECT ${columns} FROM ${b} AS t) AS d`,
    );
    return Number(rows[0]?.n ?? 0n);
  };
  return {
    onlyLive: await count(places.live, places.shadow),
    onlyShadow: await count(places.shadow, places.live),
    changed: 0,
    samples: [],
  };
}

function keyWidth(columns: readonly ColumnRow[]): number {
  return columns.filter(({ key_place }) => key_place !== null).length;
}

async function countRows(tx: Tx, table: string): Promise<number> {
  const { rows } = await tx.query<{ n: bigint }>(`SELECT count(*) AS n FROM ${table}`);
  return Number(rows[0]?.n ?? 0n);
}

async function loadColumns(
  tx: Tx,
  schemas: { readonly live: string; readonly shadow: string },
): Promise<readonly ColumnRow[]> {
  const { rows } = await tx.query<ColumnRow>(
    `SELECT CASE n.nspname WHEN $1 THEN 'live' ELSE 'shadow' END AS side, c.relname::text AS table_name,
        a.attname::text AS column_name, format_type(a.atttypid, a.atttypmod) AS type_name,
        EXISTS (SELECT FROM pg_opclass AS o JOIN pg_am AS m ON m.oid = o.opcmethod
          WHERE m.amname = 'btree' AND o.opcdefault
            AND o.opcintype IN (a.atttypid, CASE WHEN t.typcategory = 'A' THEN 'anyarray'::regtype END,
              CASE WHEN t.typname = 'varchar' THEN 'text'::regtype END)) AS is_comparable,
        array_position(i.indkey::int2[], a.attnum) AS key_place
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type AS t ON t.oid = a.atttypid
        LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
      WHERE n.nspname IN ($1, $2) AND c.relkind IN ('r', 'p')
      ORDER BY c.relname, a.attnum`,
    [schemas.live, schemas.shadow],
  );
  return rows;
}
