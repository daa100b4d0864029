import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import { migrate, migrationOwners } from "../../services/platform/migrate.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { createTestDatabase } from "../harness/database.ts";
import type { TestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";
import { projectDir } from "../harness/stack.ts";

let test: TestDatabase;
let database: Database;
let dir: string;

beforeEach(async () => {
  test = await createTestDatabase({ templateKey: "empty", migrate: async () => undefined });
  database = openDatabase({ url: test.url, applicationName: "migrate-test" });
  dir = await mkdtemp(join(tmpdir(), "fabric-migrations-"));
  await mkdir(join(dir, "shop"));
  await write("roles.json", JSON.stringify({ fabric_gate: "decides", fabric_host: "projects" }));
  await write(
    "shop/0001_orders.sql",
    "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1);",
  );
});
afterEach(async () => {
  await database.end();
  await test.drop();
  await rm(dir, { recursive: true });
});

const write = (name: string, text: string): Promise<void> => writeFile(join(dir, name), text);
const run = (schemaOf?: (owner: string) => string) =>
  migrate({
    adminUrl: test.url,
    migrationsDir: dir,
    owners: ["shop"],
    ...(schemaOf === undefined ? {} : { schemaOf }),
  });
const faultOf = (error: unknown): string =>
  error instanceof Fault ? `${error.code} ${error.message}` : String(error);

describe("migrations", () => {
  it("apply each file once, when five start together", async () => {
    const reports = await Promise.all(Array.from({ length: 5 }, () => run()));
    expect(reports.flatMap((report) => report.applied)).toEqual(["shop/0001_orders.sql"]);
    expect((await database.query("SELECT id FROM shop.orders")).rows).toEqual([{ id: 1 }]);
  });

  it("refuse a file that was edited after it was applied, and name it", async () => {
    await run();
    await write("shop/0001_orders.sql", "CREATE TABLE orders (id bigint PRIMARY KEY);");
    expect(await run().catch(faultOf)).toMatch(/MIGRATION_CHANGED.*shop\/0001_orders\.sql/);
  });

  it("refuse a file that vanished, a hole in the numbers and a name out of form", async () => {
    await run();
    await rm(join(dir, "shop/0001_orders.sql"));
    await write("shop/0002_more.sql", "SELECT 1;");
    expect(await run().catch(faultOf)).toMatch(/out of sequence/);
    await write("shop/0001_other.sql", "SELECT 1;");
    expect(await run().catch(faultOf)).toMatch(/0001_orders\.sql.*gone/);
  });

  it("leave nothing of a file that fails halfway, and go on with it when it is mended", async () => {
    await write("shop/0002_more.sql", "CREATE TABLE more (id int); SELECT 1/0;");
    expect(await run().catch(faultOf)).toMatch(/MIGRATION_FAILED.*0002_more\.sql.*division by zero/);
    await write("shop/0002_more.sql", "CREATE TABLE more (id int);");
    expect((await run()).applied).toEqual(["shop/0002_more.sql"]);
  });

  it("build the same files in a schema of another name", async () => {
    await run();
    await run((owner) => `shadow_${owner}`);
    expect((await database.query("SELECT id FROM shadow_shop.orders")).rows).toEqual([{ id: 1 }]);
  });

  it("grant exactly what is listed, and take back what no longer is", async () => {
    await write(
      "shop/grants.json",
      JSON.stringify({
        usage: ["fabric_gate"],
        tables: { orders: { fabric_gate: ["select", "update(id)"] } },
      }),
    );
    await run();
    const may = async (privilege: string): Promise<unknown> =>
      (
        await database.query("SELECT has_table_privilege('fabric_gate', 'shop.orders', $1) AS may", [
          privilege,
        ])
      ).rows[0];
    expect([await may("SELECT"), await may("INSERT")]).toEqual([{ may: true }, { may: false }]);
    await write("shop/grants.json", JSON.stringify({ usage: ["fabric_gate"], tables: {} }));
    await run();
    expect(await may("SELECT")).toEqual({ may: false });
  });

  it("let the host work on a new processor's tables, and nobody else", async () => {
    await run();
    const { rows } = await database.query(
      `SELECT grantee, string_agg(lower(privilege_type), ',' ORDER BY privilege_type) AS may
       FROM information_schema.table_privileges
       WHERE table_schema = 'shop' AND grantee LIKE 'fabric\\_%' GROUP BY grantee`,
    );
    expect(rows).toEqual([{ grantee: "fabric_host", may: "delete,insert,select,update" }]);
  });

  // A reader holds the table; a migration asks for it alone; everybody else queues behind the migration.
  it("let others use a table whose lock they wait for, and are applied when it is free", async () => {
    await run();
    await write("shop/0002_more.sql", "ALTER TABLE orders ADD COLUMN note text;");
    let migrating = Promise.resolve({ applied: [] as string[] });
    await database.transaction(async (reader) => {
      await reader.query("SELECT count(*) FROM shop.orders");
      migrating = run();
      // It has the lock that migrations take, so it is at its file.
      await eventually(async () => {
        const held = await database.query(
          "SELECT 1 FROM pg_stat_activity WHERE application_name = 'fabric-migrate' AND datname = current_database() AND wait_event_type = 'Lock'",
        );
        return held.rowCount > 0;
      });
      for (let call = 0; call < 20; call += 1) {
        expect((await database.query("SELECT id FROM shop.orders WHERE id = 1")).rowCount).toBe(1);
      }
    });
    expect(await migrating).toEqual({ applied: ["shop/0002_more.sql"] });
  });

  it("give up on a lock that nobody lets go of, naming the file, and leave nothing", async () => {
    await run();
    await write("shop/0002_more.sql", "CREATE TABLE more (id int); ALTER TABLE orders ADD COLUMN note text;");
    await database.transaction(async (reader) => {
      await reader.query("SELECT count(*) FROM shop.orders");
      const given = migrate({ adminUrl: test.url, migrationsDir: dir, owners: ["shop"], lockWaitMs: 300 });
      expect(await given.catch(faultOf)).toMatch(/MIGRATION_FAILED.*0002_more\.sql.*lock timeout/);
    });
    expect((await run()).applied).toEqual(["shop/0002_more.sql"]);
  });

  it("give up behind another migration that never ends, and say which it is", async () => {
    await database.transaction(async (other) => {
      const { rows } = await other.query<{ pid: number }>(
        "SELECT pg_backend_pid() AS pid FROM pg_advisory_xact_lock(6709602)",
      );
      const given = migrate({ adminUrl: test.url, migrationsDir: dir, owners: ["shop"], lockWaitMs: 300 });
      expect(await given.catch(faultOf)).toMatch(
        new RegExp(`MIGRATION_FAILED.*another migration is under way.*${String(rows[0]?.pid)}`),
      );
    });
    expect((await run()).applied).toEqual(["shop/0001_orders.sql"]);
  });

  it("of the product itself: every owner's folder is applied, and no role may do what its list does not say", async () => {
    await migrate({ adminUrl: test.url, migrationsDir: join(projectDir, "deploy/migrations") });
    const { rows } = await database.query<{ owner: string }>("SELECT DISTINCT owner FROM migrations.applied");
    expect(rows.map((row) => row.owner)).toEqual(expect.arrayContaining([...migrationOwners]));
    const loose = await database.query(
      `SELECT grantee, table_schema, table_name, privilege_type FROM information_schema.table_privileges
       WHERE table_schema = ANY($1) AND (grantee = 'PUBLIC' OR (grantee LIKE 'fabric\\_%' AND privilege_type IN ('TRUNCATE', 'REFERENCES', 'TRIGGER')))`,
      [[...migrationOwners]],
    );
    expect(loose.rows).toEqual([]);
    const direct = await database.query(
      "SELECT grantee FROM information_schema.table_privileges WHERE table_schema = 'outbox' AND table_name = 'events' AND privilege_type = 'INSERT' AND grantee LIKE 'fabric\\_%'",
    );
    expect(direct.rows).toEqual([]);
  });
});
