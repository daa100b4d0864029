import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { appendOutbox, notifyOutbox } from "../../services/platform/outbox.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { createTestDatabase } from "../harness/database.ts";
import type { TestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";
import { toRow } from "../harness/relay-rig.ts";

let testDatabase: TestDatabase;
let database: Database;
let gate: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, applicationName: "outbox-test" });
  gate = openDatabase({ url: testDatabase.roleUrl("fabric_gate"), applicationName: "outbox-test" });
});
afterEach(async () => {
  await gate.end();
  await database.end();
  await testDatabase.drop();
});

describe("outbox", () => {
  it("has the columns that Debezium's event router reads, under its names and types", async () => {
    const { rows } = await database.query<{ name: string; type: string; required: boolean }>(
      `SELECT attname AS name, format_type(atttypid, NULL) AS type, attnotnull AS required FROM pg_attribute
       WHERE attrelid = 'outbox.events'::regclass AND attnum > 0`,
    );
    const column = (name: string) => rows.find((row) => row.name === name);
    // The router's defaults: table.field.event.id, route.by.field, table.field.event.key, table.field.event.type,
    // table.field.event.payload (bytes pass through as they are).
    expect(column("id")).toEqual({ name: "id", type: "uuid", required: true });
    expect(column("aggregatetype")).toEqual({
      name: "aggregatetype",
      type: "character varying",
      required: true,
    });
    expect(column("aggregateid")).toEqual({ name: "aggregateid", type: "character varying", required: true });
    expect(column("type")).toEqual({ name: "type", type: "character varying", required: true });
    expect(column("payload")).toEqual({ name: "payload", type: "bytea", required: true });
  });

  it("numbers rows in the order of the arrays and puts a key into one lane", async () => {
    const rows = Array.from({ length: 50 }, (_, i) => toRow("a", `k${i % 5}`, `m${i}`));
    expect(await gate.transaction((tx) => appendOutbox(tx, rows))).toBe(50);
    const stored = await database.query<{
      id: string;
      aggregateid: string;
      lane: number;
      aggregatetype: string;
    }>("SELECT * FROM outbox.events ORDER BY seq");
    expect(stored.rows.map((row) => row.id)).toEqual(rows.map((row) => row.id));
    for (let k = 0; k < 5; k += 1) {
      const lanes = stored.rows.filter((row) => row.aggregateid === `k${k}`).map((row) => row.lane);
      expect(new Set(lanes).size).toBe(1);
    }
    expect(stored.rows[0]).toMatchObject({ tenant_id: "acme", headers: { ce_id: "m0", ce_type: "a" } });
  });

  it("takes an id that still waits only once and says so", async () => {
    const row = toRow("a", "k", "once");
    expect(await appendOutbox(gate, [row])).toBe(1);
    expect(await appendOutbox(gate, [row, toRow("a", "k", "another")])).toBe(1);
    expect(await appendOutbox(gate, [])).toBe(0);
  });

  it("lets nobody write around append, not even through a temporary table of the same name", async () => {
    await expect(
      gate.query("INSERT INTO outbox.events (id) VALUES (gen_random_uuid())"),
    ).rejects.toMatchObject({ message: expect.stringContaining("permission denied") as string });
    const analyst = openDatabase({
      url: testDatabase.roleUrl("fabric_analyst"),
      applicationName: "outbox-test",
    });
    await expect(appendOutbox(analyst, [toRow("a", "k", "x")])).rejects.toMatchObject({
      message: expect.stringContaining("permission denied") as string,
    });
    await analyst.end();
    await gate
      .transaction(async (tx) => {
        await tx.query("CREATE TEMPORARY TABLE events (LIKE outbox.events)").catch(() => undefined);
      })
      .catch(() => undefined);
    const trap = openDatabase({ url: testDatabase.url, applicationName: "outbox-test", maxConnections: 1 });
    await trap.query(
      "CREATE TEMPORARY TABLE events (seq bigserial, id uuid UNIQUE, aggregatetype text, aggregateid text, type text, payload bytea, lane smallint, tenant_id text, headers jsonb)",
    );
    await appendOutbox(trap, [toRow("a", "k", "to the real table")]);
    await trap.end();
    expect((await database.query("SELECT 1 FROM outbox.events")).rows).toHaveLength(1);
  });

  it("does not let two batches that share lanes wait for each other", async () => {
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
    const batch = (order: readonly string[]) => order.map((key) => toRow("a", key, key));
    await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        appendOutbox(gate, batch(i % 2 === 0 ? keys : [...keys].reverse())),
      ),
    );
    expect(
      (await database.query<{ n: number }>("SELECT count(*)::int AS n FROM outbox.events")).rows[0]?.n,
    ).toBe(960);
  });

  it("marks as settled only what nobody can still commit", async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let appended: () => void = () => undefined;
    const isAppended = new Promise<void>((resolve) => (appended = resolve));
    // A writer whose id is above the highest completed one: a snapshot's xmax would take it for not begun.
    const open = database.transaction(async (tx) => {
      await appendOutbox(tx, [toRow("a", "k", "late")]);
      appended();
      await held;
    });
    await isAppended;
    const mark = async () =>
      (
        await database.query<{ drawn: bigint; settled: boolean }>(
          `SELECT m.drawn, pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= $1 AS settled
           FROM outbox.settled_mark() m`,
          [xid],
        )
      ).rows[0];
    const first = await database.query<{ drawn: bigint; xid: string }>(
      "SELECT drawn, xid::text FROM outbox.settled_mark()",
    );
    const xid = first.rows[0]?.xid;
    expect(first.rows[0]?.drawn).toBe(1n);
    expect((await mark())?.settled).toBe(false);
    release();
    await open;
    // Transactions of other databases hold it back as well.
    await eventually(mark, (row) => row?.settled === true, { deadlineMs: 40_000 });
  });

  it("turns many wake-ups of a process into few, and loses none", async () => {
    let heard = 0;
    const listener = await database.listen("outbox", () => (heard += 1));
    await eventually(() => heard === 1);
    for (let i = 0; i < 500; i += 1) notifyOutbox(gate);
    await eventually(() => heard >= 3);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(heard).toBeLessThan(20);
    notifyOutbox(gate);
    const before = heard;
    await eventually(() => heard > before);
    await listener.close();
  });
});
