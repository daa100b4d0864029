import { Fault } from "../../schemas/faults.ts";
import type { Tx } from "../platform/postgres.ts";
import { quote } from "./run-schemas.ts";

interface ViewRow {
  readonly view_name: string;
  readonly definition: string;
  readonly options: string[] | null;
}

/**
 * Puts a shadow's tables in the place of the live ones, in the caller's transaction; afterwards `shadow` names the tables of
 * before. Views are made again, because a view follows the table that it was made over, wherever that is renamed to; their
 * grants and comments stay. `carried` are tables that belong to the live run: the promoted schema gets their rows.
 */
export async function swapSchemas(
  tx: Tx,
  live: string,
  shadow: string,
  carried: readonly string[],
): Promise<void> {
  await refuseStrangers(tx, live, shadow);
  for (const table of carried) {
    await tx.query(`TRUNCATE ${quote(shadow)}.${quote(table)}`);
    await tx.query(
      `INSERT INTO ${quote(shadow)}.${quote(table)} SELECT * FROM ${quote(live)}.${quote(table)}`,
    );
  }
  const views = await loadViews(tx, live);
  const between = `${shadow}_old`;
  const moves = [
    [live, between],
    [shadow, live],
    [between, shadow],
  ] as const;
  for (const [from, to] of moves) await renameSchema(tx, from, to);
  for (const { view_name, definition, options } of views) {
    const settings = options === null ? "" : ` WITH (${options.join(", ")})`;
    await tx.query(`CREATE OR REPLACE VIEW ${view_name}${settings} AS ${definition}`);
  }
  await copyGrants(tx, shadow, live);
  await revokeAll(tx, shadow);
}

/** A schema's name is also in the record of its migrations, and in functions that were told where to look. */
async function renameSchema(tx: Tx, from: string, to: string): Promise<void> {
  await tx.query(`ALTER SCHEMA ${quote(from)} RENAME TO ${quote(to)}`);
  await tx.query("UPDATE migrations.applied SET schema_name = $2 WHERE schema_name = $1", [from, to]);
  const { rows } = await tx.query<{ name: string; path: string }>(
    `SELECT p.oid::regprocedure::text AS name, substr(one, length('search_path=') + 1) AS path
      FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace, unnest(p.proconfig) AS one
      WHERE n.nspname = $1 AND one LIKE 'search_path=%'`,
    [to],
  );
  for (const { name, path } of rows) {
    const parts = path
      .split(/,\s*/)
      .map((part) => (part === from || part === quote(from) ? quote(to) : part));
    await tx.query(`ALTER FUNCTION ${name} SET search_path TO ${parts.join(", ")}`);
  }
}

/** Definitions of the views over a schema's tables, each name in them with its schema. */
async function loadViews(tx: Tx, schema: string): Promise<readonly ViewRow[]> {
  await tx.query("SET LOCAL search_path TO pg_catalog");
  const { rows } = await tx.query<ViewRow>(
    `SELECT DISTINCT format('%I.%I', vn.nspname, v.relname) AS view_name, pg_get_viewdef(v.oid) AS definition,
        v.reloptions AS options
      FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid JOIN pg_class AS v ON v.oid = r.ev_class
        JOIN pg_namespace AS vn ON vn.oid = v.relnamespace
        JOIN pg_class AS t ON t.oid = d.refobjid JOIN pg_namespace AS tn ON tn.oid = t.relnamespace
      WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
        AND tn.nspname = $1 AND vn.nspname <> $1 AND v.relkind = 'v' AND v.oid <> t.oid
      ORDER BY 1`,
    [schema],
  );
  return rows;
}

/** What would silently follow the old tables and cannot be made again here. */
async function refuseStrangers(tx: Tx, live: string, shadow: string): Promise<void> {
  const { rows } = await tx.query<{ what: string }>(
    `WITH tables AS (SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1)
     SELECT format('foreign key %s of %s', conname, conrelid::regclass) AS what FROM pg_constraint
       JOIN pg_class AS c ON c.oid = conrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
       WHERE contype = 'f' AND confrelid IN (SELECT oid FROM tables) AND n.nspname <> $1
     UNION ALL SELECT format('materialized view %s', v.oid::regclass) FROM pg_depend AS d
       JOIN pg_rewrite AS r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
       JOIN pg_class AS v ON v.oid = r.ev_class JOIN pg_namespace AS n ON n.oid = v.relnamespace
       WHERE d.refobjid IN (SELECT oid FROM tables) AND v.relkind = 'm' AND n.nspname <> $1
     UNION ALL SELECT format('policy %s on %s', p.polname, p.polrelid::regclass) FROM pg_depend AS d
       JOIN pg_policy AS p ON p.oid = d.objid AND d.classid = 'pg_policy'::regclass
       JOIN pg_class AS c ON c.oid = p.polrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
       WHERE d.refobjid IN (SELECT oid FROM tables) AND n.nspname NOT IN ($1, $2)`,
    [live, shadow],
  );
  if (rows.length === 0) return;
  throw new Fault(
    "USAGE",
    `${[...new Set(rows.map(({ what }) => what))].join(", ")} would go on with the tables of before; remove what refers to \`${live}\` from outside`,
  );
}

/** What each role held on the live tables, it holds on the ones in their place: the next deployment sets them exactly. */
async function copyGrants(tx: Tx, before: string, now: string): Promise<void> {
  const { rows } = await tx.query<{ statement: string }>(
    `WITH held AS (SELECT c.oid, c.relname, c.relkind, c.relacl FROM pg_class AS c
       JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'S')
         AND EXISTS (SELECT FROM pg_class AS o JOIN pg_namespace AS m ON m.oid = o.relnamespace
           WHERE m.nspname = $2 AND o.relname = c.relname))
     SELECT format('GRANT USAGE ON SCHEMA %I TO %I', $2::text, a.grantee::regrole) AS statement
       FROM pg_namespace AS n, aclexplode(n.nspacl) AS a
       WHERE n.nspname = $1 AND a.grantee <> 0 AND a.grantee <> n.nspowner AND a.privilege_type = 'USAGE'
     UNION ALL SELECT format('GRANT %s ON %s %I.%I TO %I', a.privilege_type,
         CASE h.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, $2::text, h.relname, a.grantee::regrole)
       FROM held AS h JOIN pg_class AS c USING (oid), aclexplode(h.relacl) AS a WHERE a.grantee <> 0 AND a.grantee <> c.relowner
     UNION ALL SELECT format('GRANT %s (%I) ON %I.%I TO %I', a.privilege_type, t.attname, $2::text, h.relname, a.grantee::regrole)
       FROM held AS h JOIN pg_attribute AS t ON t.attrelid = h.oid, aclexplode(t.attacl) AS a WHERE a.grantee <> 0`,
    [before, now],
  );
  for (const { statement } of rows) await tx.query(statement);
}

/** Nobody but the owner of the database reads or writes the tables of before. */
async function revokeAll(tx: Tx, schema: string): Promise<void> {
  const { rows } = await tx.query<{ role: string }>(
    "SELECT quote_ident(rolname) AS role FROM pg_roles WHERE rolname LIKE 'fabric\\_%'",
  );
  const roles = ["PUBLIC", ...rows.map(({ role }) => role)].join(", ");
  await tx.query(`REVOKE ALL ON ALL TABLES IN SCHEMA ${quote(schema)} FROM ${roles}`);
  await tx.query(`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ${quote(schema)} FROM ${roles}`);
  await tx.query(`REVOKE ALL ON SCHEMA ${quote(schema)} FROM ${roles}`);
}
