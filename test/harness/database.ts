import { createHash, randomBytes } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { inject } from "vitest";
import { migrate } from "../../services/platform/migrate.ts";
import { projectDir } from "./stack.ts";

export interface TestDatabase {
  /** As superuser. */
  readonly url: string;
  /** As one of the roles of `deploy/migrations/roles.json`. */
  roleUrl(role: string): string;
  drop(): Promise<void>;
}

export interface TestDatabaseOptions {
  /** A superuser's address; default the shared stack's. */
  readonly adminUrl?: string;
  /** Builds the template; default all migrations. Must close its connections. */
  readonly migrate?: (url: string) => Promise<unknown>;
  /** Names what `migrate` builds; another key is another template. Default: the digest of the migration files. */
  readonly templateKey?: string;
}

const migrationsDir = join(projectDir, "deploy", "migrations");
/** Older templates are dropped; a few stay for switching between branches. */
const TEMPLATES_KEPT = 3;
const PASSWORD = "only-for-tests";

const digestOfMigrations = async (): Promise<string> => {
  const hash = createHash("sha256");
  for (const file of (await readdir(migrationsDir, { recursive: true })).sort()) {
    if (!/\.(sql|json)$/.test(file)) continue;
    hash.update(`${file}\0`).update(await readFile(join(migrationsDir, file)));
  }
  return hash.digest("hex");
};

const migrateAll = async (adminUrl: string): Promise<void> => {
  const roles = JSON.parse(await readFile(join(migrationsDir, "roles.json"), "utf8")) as Record<
    string,
    unknown
  >;
  // Roles are the cluster's: every test database has the same ones, with the same password.
  const rolePasswords = Object.fromEntries(Object.keys(roles).map((role) => [role, PASSWORD]));
  await migrate({ adminUrl, migrationsDir, rolePasswords });
};

const withDatabase = (url: string, database: string): string => {
  const address = new URL(url);
  address.pathname = `/${database}`;
  return address.href;
};

const withClient = async <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url, application_name: "fabric-test-harness" });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

const namesLike = async (client: pg.Client, pattern: string): Promise<string[]> => {
  const found = await client.query<{ datname: string }>(
    "SELECT datname FROM pg_database WHERE datname ~ $1 ORDER BY oid DESC",
    [pattern],
  );
  return found.rows.map((row) => row.datname);
};

/** Databases of test processes that died, halves of templates, and templates of old migrations. */
const sweep = async (client: pg.Client): Promise<void> => {
  const orphans = (await namesLike(client, "^test_[0-9]+_")).filter(
    (name) => !isRunning(Number(name.split("_")[1])),
  );
  const halves = await namesLike(client, "^half_");
  const old = (await namesLike(client, "^template_[0-9a-f]{16}$")).slice(TEMPLATES_KEPT);
  for (const name of [...orphans, ...halves, ...old])
    await client.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
};

const ensureTemplate = async (
  client: pg.Client,
  adminUrl: string,
  options: TestDatabaseOptions,
): Promise<string> => {
  const key = options.templateKey ?? (await digestOfMigrations());
  const template = `template_${createHash("sha256").update(key).digest("hex").slice(0, 16)}`;
  if ((await namesLike(client, `^${template}$`)).length > 0) return template;
  await sweep(client);
  const half = `half_${randomBytes(6).toString("hex")}`;
  await client.query(`CREATE DATABASE "${half}"`);
  await (options.migrate ?? migrateAll)(withDatabase(adminUrl, half));
  // Its name is the proof that it is whole.
  await client.query(`ALTER DATABASE "${half}" RENAME TO "${template}"`);
  return template;
};

/** A database of its own, copied from a migrated template in a fraction of a second. */
export const createTestDatabase = async (options: TestDatabaseOptions = {}): Promise<TestDatabase> => {
  const adminUrl = options.adminUrl ?? inject("stack").postgresUrl;
  const name = `test_${String(process.pid)}_${randomBytes(5).toString("hex")}`;
  await withClient(adminUrl, async (client) => {
    // One at a time in the cluster: a template in use cannot be copied. The lock ends with the connection.
    await client.query("SELECT pg_advisory_lock(hashtext('fabric-test-template'))");
    const template = await ensureTemplate(client, adminUrl, options);
    await client.query(`CREATE DATABASE "${name}" TEMPLATE "${template}"`);
  });
  const url = withDatabase(adminUrl, name);
  return {
    url,
    roleUrl: (role) => {
      const address = new URL(url);
      address.username = role;
      address.password = PASSWORD;
      return address.href;
    },
    drop: () =>
      withClient(adminUrl, async (client) => {
        await client.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
      }),
  };
};
