import { randomBytes } from "node:crypto";
import { migrate } from "../platform/migrate.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import type { RunNames } from "./shadow.ts";

export interface RunSchemas {
  readonly adminUrl: string;
  readonly migrationsDir: string;
  /** The processor, which is the owner of its migrations. */
  readonly processor: string;
  /** Its migrations, when a new version brings its own. */
  readonly processorDir: string | null;
  readonly names: RunNames;
}

const passwordBytes = 24;
/** One run reads three partitions at once, and a few connections wait between two. */
const maxConnections = 12;

/** Builds the tables of a run from the files that build the live ones; what is there already stays. */
export async function makeRunSchemas(one: RunSchemas): Promise<void> {
  const { names, processor, processorDir, migrationsDir } = one;
  await migrate({
    adminUrl: one.adminUrl,
    migrationsDir,
    owners: [processor, "host"],
    schemaOf: (owner) => (owner === "host" ? names.host : names.projection),
    ...(processorDir === null
      ? {}
      : { dirOf: (owner: string) => (owner === "host" ? `${migrationsDir}/host` : processorDir) }),
  });
}

/**
 * The one role that writes a run's tables, with a password that only the caller knows. It holds what the live host holds on
 * the live tables, on these two schemas alone: nothing of the outbox, of the vault, of a live projection, not even a right to
 * name them. Whoever was connected before is cut off: of two processes that run one shadow, the later one goes on.
 * INVARIANT: test/integration/replay-role.test.ts.
 */
export async function openRunRole(database: Database, { names }: Pick<RunSchemas, "names">): Promise<string> {
  const password = randomBytes(passwordBytes).toString("base64url");
  await database.transaction(async (tx) => {
    const known = await tx.query("SELECT FROM pg_roles WHERE rolname = $1", [names.role]);
    const role = quote(names.role);
    // The alphabet of base64url needs no quoting.
    const settings = `LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOREPLICATION NOINHERIT
      CONNECTION LIMIT ${String(maxConnections)} PASSWORD '${password}'`;
    await tx.query(`${known.rowCount === 0 ? "CREATE" : "ALTER"} ROLE ${role} ${settings}`);
    await tx.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [names.role]);
    for (const statement of await likeTheHost(tx, names)) await tx.query(statement);
  });
  return password;
}

/** Grants of fabric_host on the run's tables and functions, for the run's role; and its way through row-level security. */
async function likeTheHost(tx: Tx, names: RunNames): Promise<readonly string[]> {
  const { rows } = await tx.query<{ statement: string }>(
    `WITH schemas AS (SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY ($1::text[]))
     SELECT format('GRANT USAGE ON SCHEMA %I TO %I', nspname, $2::text) AS statement FROM schemas
     UNION ALL SELECT format('GRANT %s ON %s %I.%I TO %I', a.privilege_type,
         CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, s.nspname, c.relname, $2::text)
       FROM pg_class AS c JOIN schemas AS s ON s.oid = c.relnamespace, aclexplode(c.relacl) AS a
       WHERE a.grantee = 'fabric_host'::regrole
     UNION ALL SELECT format('GRANT %s (%I) ON %I.%I TO %I', a.privilege_type, t.attname, s.nspname, c.relname, $2::text)
       FROM pg_class AS c JOIN schemas AS s ON s.oid = c.relnamespace JOIN pg_attribute AS t ON t.attrelid = c.oid,
         aclexplode(t.attacl) AS a
       WHERE a.grantee = 'fabric_host'::regrole
     UNION ALL SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, $2::text)
       FROM pg_proc AS p JOIN schemas AS s ON s.oid = p.pronamespace, aclexplode(p.proacl) AS a
       WHERE a.grantee = 'fabric_host'::regrole
     UNION ALL SELECT format('DROP POLICY IF EXISTS shadow_runs ON %I.%I', s.nspname, c.relname)
       FROM pg_class AS c JOIN schemas AS s ON s.oid = c.relnamespace WHERE c.relrowsecurity
     UNION ALL SELECT format('CREATE POLICY shadow_runs ON %I.%I TO %I USING (true) WITH CHECK (true)',
         s.nspname, c.relname, $2::text)
       FROM pg_class AS c JOIN schemas AS s ON s.oid = c.relnamespace WHERE c.relrowsecurity`,
    [[names.projection, names.host], names.role],
  );
  return rows.map((row) => row.statement);
}

/** Takes the run's role away, with its grants and policies in this database; no process can go on with the run. */
export async function closeRunRole(tx: Tx, names: RunNames): Promise<void> {
  const known = await tx.query("SELECT FROM pg_roles WHERE rolname = $1", [names.role]);
  if (known.rowCount === 0) return;
  const role = quote(names.role);
  await tx.query(`ALTER ROLE ${role} NOLOGIN`);
  await tx.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [names.role]);
  const { rows } = await tx.query<{ statement: string }>(
    `SELECT format('DROP POLICY shadow_runs ON %I.%I', schemaname, tablename) AS statement FROM pg_policies
     WHERE policyname = 'shadow_runs' AND $1::name = ANY (roles)`,
    [names.role],
  );
  for (const { statement } of rows) await tx.query(statement);
  await tx.query(`DROP OWNED BY ${role}`);
  await tx.query(`DROP ROLE ${role}`);
}

/** Removes a run for good: role, tables, and the record of the migrations that built them. */
export async function dropRun(tx: Tx, names: RunNames): Promise<void> {
  await closeRunRole(tx, names);
  for (const schema of [names.projection, names.host]) await dropSchema(tx, schema);
}

export async function dropSchema(tx: Tx, schema: string): Promise<void> {
  await tx.query(`DROP SCHEMA IF EXISTS ${quote(schema)} CASCADE`);
  await tx.query("DELETE FROM migrations.applied WHERE schema_name = $1", [schema]);
}

/** A name as an SQL identifier. */
export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
