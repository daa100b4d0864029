import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../../services/platform/migrate.ts";

const PASSWORD = "only-for-benchmarks";

/** A database of one run, dropped at its end. */
export interface BenchDatabase {
  readonly name: string;
  /** As superuser. */
  readonly url: string;
  /** As one of the roles of `deploy/migrations/roles.json`. */
  roleUrl(role: string): string;
  /** One superuser connection; closed by `drop`. */
  readonly admin: pg.Client;
  drop(): Promise<void>;
}

/** Makes a database, as far as the migrations of this checkout build it. */
export async function createBenchDatabase(
  adminUrl: string,
  projectDir: string,
  name: string,
): Promise<BenchDatabase> {
  await withClient(adminUrl, (client) => client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`));
  const address = new URL(adminUrl);
  address.pathname = `/${name}`;
  const url = address.href;
  const migrationsDir = join(projectDir, "deploy", "migrations");
  const roles = Object.keys(
    JSON.parse(await readFile(join(migrationsDir, "roles.json"), "utf8")) as Record<string, string>,
  );
  await migrate({
    adminUrl: url,
    migrationsDir,
    rolePasswords: Object.fromEntries(roles.map((role) => [role, PASSWORD])),
  });
  const admin = new pg.Client({ connectionString: url, application_name: "fabric-bench" });
  // The server ends before us when a run is broken off; the next statement says so.
  admin.on("error", () => undefined);
  await admin.connect();
  return {
    name,
    url,
    admin,
    roleUrl: (role) => {
      const own = new URL(url);
      own.username = role;
      own.password = PASSWORD;
      return own.href;
    },
    async drop() {
      await admin.end();
      await withClient(adminUrl, (client) =>
        client.query(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(name)} WITH (FORCE)`),
      );
    },
  };
}

async function withClient(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: "fabric-bench" });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
