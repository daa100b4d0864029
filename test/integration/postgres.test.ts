import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { createTestDatabase } from "../harness/database.ts";
import type { TestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";
import { startFaultLink } from "../harness/fault-link.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";

let test: TestDatabase;
const open: Database[] = [];

beforeAll(async () => {
  test = await createTestDatabase({ templateKey: "empty", migrate: async () => undefined });
});
afterAll(async () => {
  await Promise.all(open.map((database) => database.end()));
  await test.drop();
});

function database(
  settings: { maxConnections?: number; queryTimeoutMs?: number; connectTimeoutMs?: number } = {},
) {
  const one = openDatabase({ url: test.url, applicationName: "postgres-test", ...settings });
  open.push(one);
  return one;
}

/** A message of the server: its kind, its length, its body. */
function pgMessage(kind: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind, 0, "latin1");
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const codeOf = (error: unknown): string => (error instanceof Fault ? error.code : String(error));

describe("the Postgres pool", () => {
  // A running query times out on the client; the pool must not hand its connection to the next user.
  it("gives ten quick answers after a query that timed out", async () => {
    const pool = database({ maxConnections: 2, queryTimeoutMs: 1_000 });
    const slow = await pool.query("SELECT pg_sleep(30)").catch(codeOf);
    expect(slow).toBe("DATABASE_UNAVAILABLE");
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => pool.query<{ one: number }>("SELECT 1 AS one")),
    );
    expect(answers.map((answer) => answer.rows[0]?.one)).toEqual(Array(10).fill(1));
  });

  // Four connections that a router forgot: each would cost its user a wait of its own.
  it("takes no connection from before a silence", async () => {
    const address = new URL(test.url);
    const link = await startFaultLink({ host: address.hostname, port: Number(address.port) });
    address.host = `${link.host}:${String(link.port)}`;
    const pool = openDatabase({
      url: address.href,
      applicationName: "postgres-test",
      maxConnections: 4,
      queryTimeoutMs: 500,
    });
    try {
      await Promise.all([1, 2, 3, 4].map(() => pool.query("SELECT pg_sleep(0.1)")));
      await link.begin({ kind: "black-hole" });
      const lost = await pool.transaction((tx) => tx.query("SELECT 1")).catch(codeOf);
      expect(lost).toBe("DATABASE_UNAVAILABLE");
      // All four meet the fault: what they had been given back with is not known to be alive.
      await link.end();
      for (let one = 0; one < 6; one += 1) await pool.query("SELECT 1");
    } finally {
      await pool.end();
      await link.close();
    }
  });

  // The server was not told that its client is gone, and would keep the lock for as long as TCP is patient.
  it("lets go of what a transaction locked whose connection fell silent", async () => {
    const address = new URL(test.url);
    const link = await startFaultLink({ host: address.hostname, port: Number(address.port) });
    address.host = `${link.host}:${String(link.port)}`;
    const silent = openDatabase({
      url: address.href,
      applicationName: "postgres-test",
      queryTimeoutMs: 500,
      idleTransactionMs: 1_000,
    });
    const other = database();
    try {
      await other.query("CREATE TABLE locked AS SELECT 1 AS n");
      const lost = await silent
        .transaction(async (tx) => {
          await tx.query("UPDATE locked SET n = 2");
          await link.begin({ kind: "half-open" });
          await tx.query("SELECT 1");
        })
        .catch(codeOf);
      expect(lost).toBe("DATABASE_UNAVAILABLE");
      const { rowCount } = await other.query("UPDATE locked SET n = 3");
      expect(rowCount).toBe(1);
    } finally {
      await link.end();
      await silent.end();
      await link.close();
    }
  });

  it("goes on after a migration changed what a prepared statement returns", async () => {
    const pool = database({ maxConnections: 1 });
    await pool.query("CREATE TABLE widened (a int)");
    const statement = { name: "all-widened", text: "SELECT * FROM widened" };
    await pool.query(statement);
    await pool.query("ALTER TABLE widened ADD COLUMN b text");
    // It may pass: whoever asks again is served by a new connection.
    expect(await pool.query(statement).catch(codeOf)).toBe("DATABASE_CONFLICT");
    expect((await pool.query(statement)).rows).toEqual([]);
  });

  it("refuses instead of hanging when every connection is in a transaction", async () => {
    const pool = database({ maxConnections: 2, connectTimeoutMs: 300 });
    const nested = await pool
      .transaction(() =>
        pool.transaction(async (tx) => {
          await pool.query("SELECT 1");
          return tx;
        }),
      )
      .catch(codeOf);
    expect(nested).toBe("DATABASE_UNAVAILABLE");
    expect((await pool.query("SELECT 1")).rowCount).toBe(1);
  });

  it("rolls a failed transaction back, and its connection goes on", async () => {
    const pool = database({ maxConnections: 1 });
    await pool.query("CREATE TABLE kept (id int PRIMARY KEY)");
    const failed = await pool
      .transaction(async (tx) => {
        await tx.query("INSERT INTO kept VALUES (1)");
        await tx.query("INSERT INTO kept VALUES (1)");
      })
      .catch(codeOf);
    expect(failed).toBe("DATABASE_REJECTED");
    expect((await pool.query("SELECT * FROM kept")).rows).toEqual([]);
  });

  it("tells a lost race from bad data and from a database that is away", async () => {
    const pool = database();
    const faults = await Promise.all([
      pool.query("SELECT 1/0").catch(codeOf),
      pool.query("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$").catch(codeOf),
      pool.query("SELECT no_such_column").catch(codeOf),
      openDatabase({ url: "postgres://x@127.0.0.1:1/x", applicationName: "nobody" })
        .query("SELECT 1")
        .catch(codeOf),
    ]);
    expect(faults).toEqual(["DATABASE_REJECTED", "DATABASE_CONFLICT", "INTERNAL", "DATABASE_UNAVAILABLE"]);
  });

  // The same statement never succeeds: a row wider than an index takes, a row hit twice, a check of the processor's own.
  it.each(["54000", "21000", "44000", "P0004"])("takes %s for the data's fault", async (state) => {
    const raised = `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}'; END $$`;
    expect(await database().query(raised).catch(codeOf)).toBe("DATABASE_REJECTED");
  });

  it("survives a connection that the server ends, in use and idle", async () => {
    const pool = database({ maxConnections: 2 });
    const killed = await pool
      .transaction(async (tx) => {
        const { rows } = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
        await database().query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
        await tx.query("SELECT 1");
      })
      .catch(codeOf);
    expect(killed).toBe("DATABASE_UNAVAILABLE");
    await database().query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postgres-test' AND pid <> pg_backend_pid() AND datname = current_database()",
    );
    await eventually(async () => (await pool.query("SELECT 1")).rowCount === 1);
  });

  // Between "ready" and its first query nobody but the pool's own listener is there; without it the process would end.
  it("survives a server that ends in the same breath in which it is ready", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        const [ok, ready] = [pgMessage("R", Buffer.alloc(4)), pgMessage("Z", Buffer.from("I"))];
        const end = pgMessage("E", Buffer.from("SFATAL\0C57P01\0Mterminating connection\0\0"));
        socket.end(Buffer.concat([ok, ready, end]));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const pool = openDatabase({ url: `postgres://x:y@127.0.0.1:${String(port)}/z`, applicationName: "x" });
    try {
      const answers = await Promise.all([1, 2, 3].map(() => pool.query("SELECT 1").catch(codeOf)));
      expect(answers).toEqual(Array(3).fill("DATABASE_UNAVAILABLE"));
    } finally {
      await pool.end();
      server.close();
    }
  });

  // The work fails of its own, and the network goes silent before the ROLLBACK is answered.
  it("destroys a connection whose rollback got no answer, whatever the work failed of", async () => {
    const server = new URL(test.url);
    const proxy = await startTcpProxy({ host: server.hostname, port: Number(server.port) });
    server.host = `127.0.0.1:${String(proxy.port)}`;
    const pool = openDatabase({
      url: server.href,
      applicationName: "postgres-test",
      maxConnections: 1,
      queryTimeoutMs: 500,
    });
    open.push(pool);
    const failed = await pool
      .transaction(async (tx) => {
        await tx.query("SELECT 1");
        proxy.swallow = "both";
        throw new Error("the work's own");
      })
      .catch((error: unknown) => (error as Error).message);
    proxy.swallow = "none";
    expect(failed).toBe("the work's own");
    expect((await pool.query("SELECT 1")).rowCount).toBe(1);
    await pool.end();
    open.pop();
    await proxy.close();
  });

  it("reads every 64-bit number exactly", async () => {
    const { rows } = await database().query<{ big: bigint; list: bigint[] }>(
      "SELECT 9223372036854775807::int8 AS big, ARRAY[-4503599627370497, 9007199254740993]::int8[] AS list",
    );
    expect(rows[0]).toEqual({ big: 9223372036854775807n, list: [-4503599627370497n, 9007199254740993n] });
  });

  it("listens again by itself after its connection is lost, and says when it may have been deaf", async () => {
    const pool = database();
    const heard: string[] = [];
    const states: string[] = [];
    const listener = await pool.listen(
      "probe",
      (payload) => heard.push(payload),
      (state) => states.push(state),
    );
    await pool.query("SELECT pg_notify('probe', 'one')");
    await eventually(() => heard.includes("one"));
    await pool.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()",
    );
    await eventually(() => states.join() === "live,stale,live");
    await pool.query("SELECT pg_notify('probe', 'two')");
    await eventually(() => heard.includes("two"));
    await listener.close();
  });
});
