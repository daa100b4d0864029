import { createHash } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import { backoffMs } from "./backoff.ts";
import { toDatabaseFault } from "./postgres.ts";

/**
 * Order in which the product's own folders are applied: an owner may refer to one before it. Other folders are those of
 * processors and come after, but before the views of `analytics`, which read them. Each owner has one Postgres schema,
 * named like it.
 */
export const migrationOwners = [
  "contracts",
  "access",
  "vault",
  "outbox",
  "gate",
  "host",
  "exporters",
  "audit",
  "analytics",
] as const;

/** Any number; it only has to differ from other applications' advisory locks. */
const migrationLock = 0x666162;

const privilege = z.enum(["select", "insert", "update", "delete"]);
const grantsSchema = z.strictObject({
  usage: z.array(z.string()).default([]),
  tables: z
    .record(
      z.string(),
      z.record(z.string(), z.array(z.union([privilege, z.string().regex(/^update\([a-z_, ]+\)$/)]))),
    )
    .default({}),
  functions: z.record(z.string(), z.array(z.string())).default({}),
  sequences: z.record(z.string(), z.array(z.string())).default({}),
});

export interface MigrateOptions {
  /** Connection that may create schemas and roles. */
  readonly adminUrl: string;
  readonly migrationsDir: string;
  /** Role → password; a role without one is created without login. */
  readonly rolePasswords?: Readonly<Record<string, string>>;
  /** Default: every folder there is. */
  readonly owners?: readonly string[];
  /** Postgres schema of an owner; a shadow builds the same files elsewhere. */
  readonly schemaOf?: (owner: string) => string;
  /** Folder of an owner's files; default the one of its name below `migrationsDir`. */
  readonly dirOf?: (owner: string) => string;
  /** How long locks that others hold are tried for, over all; default five minutes. */
  readonly lockWaitMs?: number;
}

/**
 * Longest wait for one lock of a table. Whatever else wants the table queues behind the one who waits, so it has to be
 * shorter than the time that a call of the gate has (250 ms); then the file is undone, and tried again a little later.
 */
const oneLockMs = 100;
const defaultLockWaitMs = 5 * 60_000;
const connectTimeoutMs = 10_000;
/** A migration whose machine or network died holds its locks, and those of all others, no longer than this. */
const endOfTheDead = [
  "idle_in_transaction_session_timeout=60s",
  "tcp_keepalives_idle=30",
  "tcp_keepalives_interval=10",
  "tcp_keepalives_count=6",
]
  .map((setting) => `-c ${setting}`)
  .join(" ");
const lockRetry = { minMs: 100, maxMs: 2_000 };

/**
 * Applies what is missing, each file once, in one transaction, under a lock, so that two that start together are safe.
 * It may run while services do: nobody waits behind it for longer than a moment. An applied file that was edited is refused. Grants are set to exactly what `grants.json` lists.
 */
export async function migrate(options: MigrateOptions): Promise<{ applied: string[] }> {
  const client = new pg.Client({
    connectionString: options.adminUrl,
    application_name: "fabric-migrate",
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    options: endOfTheDead,
  });
  // A server that ends between two statements is told by the next one.
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (error) {
    throw toDatabaseFault(error);
  }
  try {
    await takeMigrationLock(client, options.lockWaitMs ?? defaultLockWaitMs);
    await createRoles(client, options);
    await client.query(`
      CREATE SCHEMA IF NOT EXISTS migrations;
      CREATE TABLE IF NOT EXISTS migrations.applied (
        schema_name text NOT NULL, owner text NOT NULL, file text NOT NULL, sha256 text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (schema_name, file))`);
    const applied: string[] = [];
    const owners = options.owners ?? (await findOwners(options.migrationsDir));
    for (const owner of owners) applied.push(...(await migrateOwner(client, options, owner)));
    for (const owner of owners) await applyGrants(client, options, owner);
    return { applied };
  } catch (error) {
    throw error instanceof Fault ? error : new Fault("MIGRATION_FAILED", messageOf(error), { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** One migration at a time. Whoever waits says for whom when it gives up. */
async function takeMigrationLock(client: pg.Client, waitMs: number): Promise<void> {
  // Also for what is done outside of files: nothing here waits for ever.
  await client.query("SELECT set_config('lock_timeout', $1, false)", [String(waitMs)]);
  try {
    await client.query("SELECT pg_advisory_lock($1)", [migrationLock]);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== "55P03") throw error;
    const holder = await client.query<{ pid: number; since: string }>(
      `SELECT l.pid, to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS since
       FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid)
       WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.classid = 0 AND l.objid = $1
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      [migrationLock],
    );
    const [row] = holder.rows;
    const who = row === undefined ? "" : ` (server process ${String(row.pid)}, since ${row.since} UTC)`;
    throw new Fault("MIGRATION_FAILED", `another migration is under way${who}; wait for it, or end it`, {
      cause: error,
    });
  }
}

async function findOwners(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const core: readonly string[] = migrationOwners;
  const ofProcessors = folders.filter((name) => !core.includes(name)).sort();
  return [...core.filter((name) => name !== "analytics"), ...ofProcessors, "analytics"];
}

/** Files of one owner, in order; the name is four digits, an underscore and words. */
async function migrationFiles(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [] as string[];
    throw error;
  });
  const files = names.filter((name) => name.endsWith(".sql")).sort();
  files.forEach((name, index) => {
    if (!/^\d{4}_[a-z0-9_]+\.sql$/.test(name) || Number(name.slice(0, 4)) !== index + 1) {
      throw new Fault(
        "MIGRATION_FAILED",
        `\`${name}\` is out of sequence; number files 0001, 0002, … without holes`,
      );
    }
  });
  return files;
}

function dirOf(options: MigrateOptions, owner: string): string {
  return options.dirOf?.(owner) ?? join(options.migrationsDir, owner);
}

async function migrateOwner(client: pg.Client, options: MigrateOptions, owner: string): Promise<string[]> {
  const dir = dirOf(options, owner);
  const files = await migrationFiles(dir);
  if (files.length === 0) return [];
  const schema = options.schemaOf?.(owner) ?? owner;
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${pg.escapeIdentifier(schema)}`);
  const known = await client.query<{ file: string; sha256: string }>(
    "SELECT file, sha256 FROM migrations.applied WHERE schema_name = $1",
    [schema],
  );
  const before = new Map(known.rows.map((row) => [row.file, row.sha256]));
  const vanished = [...before.keys()].find((file) => !files.includes(file));
  if (vanished !== undefined) {
    throw new Fault(
      "MIGRATION_CHANGED",
      `\`${owner}/${vanished}\` was applied here and is gone; restore the file`,
    );
  }
  const applied: string[] = [];
  for (const file of files) {
    const sql = await readFile(join(dir, file), "utf8");
    const sha256 = createHash("sha256").update(sql).digest("hex");
    const knownSha = before.get(file);
    if (knownSha === sha256) continue;
    if (knownSha !== undefined) {
      throw new Fault("MIGRATION_CHANGED", `\`${owner}/${file}\`; restore it and add a new file instead`);
    }
    await retryLocks(options.lockWaitMs ?? defaultLockWaitMs, async () => {
      try {
        await client.query("BEGIN");
        await client.query(`SET LOCAL lock_timeout TO ${String(oneLockMs)}`);
        await client.query(`SET LOCAL search_path TO ${pg.escapeIdentifier(schema)}, pg_catalog`);
        await client.query(sql);
        await client.query(
          "INSERT INTO migrations.applied (schema_name, owner, file, sha256) VALUES ($1, $2, $3, $4)",
          [schema, owner, file, sha256],
        );
        await client.query("COMMIT");
      } catch (error) {
        await client.query("ROLLBACK").catch(() => undefined);
        throw new Fault("MIGRATION_FAILED", `\`${owner}/${file}\`: ${messageOf(error)}`, { cause: error });
      }
    });
    applied.push(`${owner}/${file}`);
  }
  return applied;
}

async function createRoles(client: pg.Client, options: MigrateOptions): Promise<void> {
  const text = await readFile(join(options.migrationsDir, "roles.json"), "utf8");
  const roles = z.record(z.string().regex(/^fabric_[a-z]+$/), z.string()).parse(JSON.parse(text));
  for (const role of Object.keys(roles)) {
    const name = pg.escapeIdentifier(role);
    // Roles belong to the cluster: another database's migration may be creating the same one.
    await client.query(
      `DO $do$ BEGIN CREATE ROLE ${name} NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $do$`,
    );
    const password = options.rolePasswords?.[role];
    if (password !== undefined) {
      await retryConcurrent(() =>
        client.query(`ALTER ROLE ${name} LOGIN PASSWORD ${pg.escapeLiteral(password)}`),
      );
    }
  }
}

async function applyGrants(client: pg.Client, options: MigrateOptions, owner: string): Promise<void> {
  const path = join(dirOf(options, owner), "grants.json");
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  const schemaName = options.schemaOf?.(owner) ?? owner;
  const exists = await client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schemaName]);
  if (exists.rowCount === 0) return;
  const parsed = grantsSchema.safeParse(
    text === null ? await processorGrants(client, schemaName) : (JSON.parse(text) as unknown),
  );
  if (!parsed.success)
    throw new Fault("MIGRATION_FAILED", `\`${owner}/grants.json\`: ${z.prettifyError(parsed.error)}`);
  const grants = parsed.data;
  const schema = pg.escapeIdentifier(schemaName);
  const roles = await client.query<{ rolname: string }>(
    "SELECT rolname FROM pg_roles WHERE rolname LIKE 'fabric\\_%'",
  );
  const everyone = roles.rows.map((row) => pg.escapeIdentifier(row.rolname)).join(", ");
  const statements = [
    `REVOKE ALL ON SCHEMA ${schema} FROM PUBLIC, ${everyone}`,
    `REVOKE ALL ON ALL TABLES IN SCHEMA ${schema} FROM PUBLIC, ${everyone}`,
    `REVOKE ALL ON ALL SEQUENCES IN SCHEMA ${schema} FROM PUBLIC, ${everyone}`,
    `REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ${schema} FROM PUBLIC, ${everyone}`,
    ...grants.usage.map((role) => `GRANT USAGE ON SCHEMA ${schema} TO ${pg.escapeIdentifier(role)}`),
  ];
  for (const [table, byRole] of Object.entries(grants.tables)) {
    for (const [role, privileges] of Object.entries(byRole)) {
      statements.push(
        `GRANT ${privileges.join(", ")} ON ${schema}.${pg.escapeIdentifier(table)} TO ${pg.escapeIdentifier(role)}`,
      );
    }
  }
  for (const [signature, byRole] of Object.entries(grants.functions)) {
    for (const role of byRole) {
      statements.push(`GRANT EXECUTE ON FUNCTION ${schema}.${signature} TO ${pg.escapeIdentifier(role)}`);
    }
  }
  for (const [sequence, byRole] of Object.entries(grants.sequences)) {
    for (const role of byRole) {
      statements.push(
        `GRANT USAGE ON SEQUENCE ${schema}.${pg.escapeIdentifier(sequence)} TO ${pg.escapeIdentifier(role)}`,
      );
    }
  }
  // One transaction: a running service never sees the moment between revoke and grant.
  await retryConcurrent(async () => {
    await client.query("BEGIN");
    try {
      for (const statement of statements) await client.query(statement);
      await client.query("COMMIT");
    } catch (error) {
      await client.query("ROLLBACK").catch(() => undefined);
      throw new Fault("MIGRATION_FAILED", `grants of \`${owner}\`: ${messageOf(error)}`, { cause: error });
    }
  });
}

/** A folder without grants.json is a processor's: the host works on its tables, and nobody else. */
async function processorGrants(client: pg.Client, schema: string): Promise<unknown> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1",
    [schema],
  );
  const all = ["select", "insert", "update", "delete"];
  return {
    usage: ["fabric_host"],
    tables: Object.fromEntries(rows.map(({ name }) => [name, { fabric_host: all }])),
  };
}

/** SQLSTATE: a lock was not there in time, or two waited for each other. */
const lockStates: ReadonlySet<unknown> = new Set(["55P03", "40P01"]);

async function retryLocks(waitMs: number, work: () => Promise<void>): Promise<void> {
  const untilMs = performance.now() + waitMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as { readonly code?: unknown };
      if (!lockStates.has(code) || performance.now() > untilMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt, Math.random(), lockRetry)));
    }
  }
}

/** Two databases of one cluster may alter the same role at once; Postgres then says "tuple concurrently updated". */
async function retryConcurrent<T>(work: () => Promise<T>): Promise<T> {
  const attempts = 10;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === attempts || !/concurrently/.test(messageOf(error))) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20 * attempt));
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
