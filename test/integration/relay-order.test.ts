import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { appendOutbox, notifyOutbox } from "../../services/platform/outbox.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Tx } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import { firstOccurrences, openRelayRig, toRow } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";

let rig: RelayRig;
beforeEach(async () => {
  rig = await openRelayRig();
  await rig.createTopic("a");
});
afterEach(async () => {
  for (const release of held.splice(0)) release();
  await rig.close();
});

/** Ends transactions that a failed test left open. */
const held: (() => void)[] = [];

interface OpenTransaction {
  readonly tx: Tx;
  commit(): Promise<void>;
}
/** A transaction that the test holds open. */
async function begin(): Promise<OpenTransaction> {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  held.push(release);
  let done: Promise<void> = Promise.resolve();
  const tx = await new Promise<Tx>((resolve, reject) => {
    done = rig.database.transaction(async (inner) => {
      resolve(inner);
      await released;
    });
    done.catch(reject);
  });
  return {
    tx,
    commit: () => {
      release();
      return done;
    },
  };
}

/** Two keys of different lanes. */
async function twoLanes(): Promise<[string, string]> {
  const { rows } = await rig.database.query<{ a: string; b: string }>(
    "SELECT 'k1' AS a, 'k' || n AS b FROM generate_series(2, 99) n WHERE outbox.lane_of('k' || n) <> outbox.lane_of('k1') LIMIT 1",
  );
  return [rows[0]?.a ?? "", rows[0]?.b ?? ""];
}
const values = async (key: string): Promise<string[]> =>
  (await rig.read("a")).filter((one) => one.key === key).map((one) => one.value.toString());

describe("order of the relay", () => {
  // eugene-khyst/postgresql-event-sourcing#2: a number is drawn before the commit, and a reader that remembers the
  // highest one loses whoever commits late.
  it("publishes a row whose transaction stays open while later ones are published and deleted", async () => {
    const [slow, fast] = await twoLanes();
    // Sweeps would find the row in any case: they are put off.
    rig.startRelay({ sweepMs: 3_600_000 });
    const first = await begin();
    await appendOutbox(first.tx, [toRow("a", slow, "early number, late commit")]);
    for (let i = 0; i < 60; i += 1) {
      await rig.append([toRow("a", fast, `f${i}`)]);
      if (i % 10 === 0) await rig.drained();
    }
    await rig.drained();
    await first.commit();
    await rig.drained();
    expect(await values(slow)).toEqual(["early number, late commit"]);
    expect(await values(fast)).toHaveLength(60);
  });

  it("goes on after a number that was drawn and rolled back", async () => {
    rig.startRelay({ sweepMs: 3_600_000 });
    await rig.append([toRow("a", "k", "one")]);
    await rig.database
      .transaction(async (tx) => {
        await appendOutbox(tx, [toRow("a", "k", "never")]);
        throw new Error("rolled back");
      })
      .catch(() => undefined);
    await rig.append([toRow("a", "k", "two")]);
    await rig.drained();
    expect(await values("k")).toEqual(["one", "two"]);
  });

  // eugene-khyst/postgresql-event-sourcing#16: ordering by transaction id publishes an order that never existed.
  it("publishes one key in commit order, also when the later transaction would commit first", async () => {
    rig.startRelay();
    const first = await begin();
    const second = await begin();
    // The second one has the smaller transaction id and comes to the outbox later.
    await second.tx.query("SELECT pg_current_xact_id()");
    await appendOutbox(first.tx, [toRow("a", "k", "first")]);
    const waiting = appendOutbox(second.tx, [toRow("a", "k", "second")]);
    await eventually(
      async () =>
        (await rig.database.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).rows
          .length,
      (count) => count > 0,
      { what: "the second writer waiting for the lane" },
    );
    await first.commit();
    await waiting;
    await second.commit();
    await rig.drained();
    expect(await values("k")).toEqual(["first", "second"]);
  });

  it("loses nothing and keeps commit order per key under many writers and two relays that come and go", async () => {
    await rig.database.query("CREATE TABLE counters (key text PRIMARY KEY, n int NOT NULL)");
    const keys = Array.from({ length: 12 }, (_, i) => `key-${i}`);
    await rig.database.query("INSERT INTO counters SELECT unnest($1::text[]), 0", [keys]);
    const writers = openDatabase({
      url: rig.testDatabase.url,
      applicationName: "writers",
      maxConnections: 12,
    });
    const fastLease = { leaseMs: 600, batchRows: 40, sweepMs: 3_600_000 };
    rig.startRelay(fastLease);
    let visitor = rig.startRelay(fastLease);

    let rolledBack = 0;
    const write = async (seed: number): Promise<void> => {
      let state = seed * 7919 + 1;
      const next = (below: number): number => {
        state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
        return Math.floor((state / 0x7fffffff) * below) % below;
      };
      for (let i = 0; i < 25; i += 1) {
        const touched = [...new Set([next(12), next(12), next(12)])].sort((a, b) => a - b);
        await writers
          .transaction(async (tx) => {
            const rows = [];
            for (const index of touched) {
              // The row lock makes the counter's order the commit order.
              const { rows: counted } = await tx.query<{ n: number }>(
                "UPDATE counters SET n = n + 1 WHERE key = $1 RETURNING n",
                [keys[index]],
              );
              rows.push(toRow("a", keys[index] ?? "", String(counted[0]?.n)));
            }
            await appendOutbox(tx, rows);
            if (next(5) === 0) await tx.query("SELECT pg_sleep(0.02)");
            if (next(10) === 0) {
              rolledBack += 1;
              throw new Error("rolled back");
            }
          })
          .catch((error: unknown) => {
            if (!(error instanceof Error) || error.message !== "rolled back") throw error;
          });
        notifyOutbox(writers);
      }
    };
    const writing = Promise.all(Array.from({ length: 10 }, (_, i) => write(i)));
    let done = false;
    void writing.finally(() => (done = true)).catch(() => undefined);
    while (!done) {
      await visitor.stop();
      visitor = rig.startRelay(fastLease);
      await eventually(() => done || visitor.relay.health().laneGroups > 0, Boolean);
    }
    await writing;
    await rig.drained(30_000);
    await writers.end();

    const { rows: counters } = await rig.database.query<{ key: string; n: number }>("SELECT * FROM counters");
    const read = await rig.read("a");
    expect(rolledBack).toBeGreaterThan(0);
    for (const { key, n } of counters) {
      const seen = read.filter((one) => one.key === key).map((one) => one.value.toString());
      expect(firstOccurrences(seen)).toEqual(Array.from({ length: n }, (_, i) => String(i + 1)));
    }
  });
});
