import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createMetrics } from "../../services/platform/metrics.ts";
import { notifyOutbox } from "../../services/platform/outbox.ts";
import { eventually } from "../harness/eventually.ts";
import { firstOccurrences, openRelayRig, toRow } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";

let rig: RelayRig;
beforeEach(async () => {
  rig = await openRelayRig();
});
afterEach(() => rig.close());

const texts = (records: readonly { value: Buffer }[]): string[] => records.map((one) => one.value.toString());

describe("relay", () => {
  it("publishes committed rows as they are, forgets rolled-back ones, and empties the table", async () => {
    await rig.createTopic("a");
    await rig.append([toRow("a", "k1", "one"), toRow("a", "k2", "two"), toRow("a", "k1", "three")]);
    await rig.database
      .transaction(async (tx) => {
        await tx.query("SELECT outbox.append($1::uuid[],$2,$3,$4,$5,$6::jsonb[])", [
          ["00000000-0000-7000-8000-000000000001"],
          ["a"],
          ["k1"],
          ["acme"],
          [Buffer.from("never")],
          ["{}"],
        ]);
        throw new Error("rolled back");
      })
      .catch(() => undefined);
    await rig.append([toRow("a", "k1", "four")]);
    rig.startRelay();
    await rig.drained();
    const read = await rig.read("a");
    expect(texts(read.filter((one) => one.key === "k1"))).toEqual(["one", "three", "four"]);
    expect(texts(read.filter((one) => one.key === "k2"))).toEqual(["two"]);
    expect(read[0]?.headers).toMatchObject({ ce_type: "a" });
  });

  it("is woken by a notification, long before the next poll", async () => {
    await rig.createTopic("a");
    const { relay } = rig.startRelay({ pollMs: 60_000 });
    await eventually(
      () => relay.health(),
      (health) => health.listener === "live" && health.laneGroups === 16,
    );
    for (let i = 0; i < 5; i += 1) {
      await rig.append([toRow("a", "k", `m${i}`)]);
      notifyOutbox(rig.database);
      await rig.drained(5_000);
    }
    expect(texts(await rig.read("a"))).toEqual(["m0", "m1", "m2", "m3", "m4"]);
  });

  it("publishes without any notification within the poll interval", async () => {
    await rig.createTopic("a");
    rig.startRelay({ pollMs: 100 });
    await rig.append([toRow("a", "k", "quiet")]);
    await rig.drained();
    expect(texts(await rig.read("a"))).toEqual(["quiet"]);
  });

  it("parks a row that the broker will never take, whole and with the reason, and its key goes on", async () => {
    await rig.createTopic("a", 3, { "max.message.bytes": "20000" });
    const good = Array.from({ length: 40 }, (_, i) => toRow("a", `k${i % 4}`, `g${i}`));
    const big = toRow("a", "k1", "too big", Buffer.alloc(50_000, 1));
    const rows = [...good.slice(0, 17), big, ...good.slice(17)];
    await rig.append(rows);
    const metrics = createMetrics();
    rig.startRelay({ metrics });
    await rig.drained();

    const parked = await rig.database.query<Record<string, unknown>>("SELECT * FROM outbox.parked");
    expect(parked.rows).toHaveLength(1);
    expect(parked.rows[0]).toMatchObject({ id: big.id, aggregateid: "k1", code: "RECORD_TOO_LARGE" });
    expect(parked.rows[0]?.["payload"]).toEqual(big.payload);
    expect(String(parked.rows[0]?.["reason"])).toContain("MESSAGE_TOO_LARGE");
    const read = await rig.read("a");
    for (let k = 0; k < 4; k += 1) {
      const expected = good.filter((row) => row.key === `k${k}`).map((row) => row.payload.toString());
      expect(firstOccurrences(texts(read.filter((one) => one.key === `k${k}`)))).toEqual(expected);
    }
    expect(await metrics.render()).toContain('fabric_outbox_parked_total{code="RECORD_TOO_LARGE"} 1');
  });

  it("parks rows of a topic whose name Kafka does not allow", async () => {
    await rig.createTopic("a");
    await rig.append([
      toRow("no such name!", "k", "x"),
      toRow("a", "k", "y"),
      toRow("no such name!", "k", "z"),
    ]);
    rig.startRelay();
    await rig.drained();
    expect(texts(await rig.read("a"))).toEqual(["y"]);
    const { rows } = await rig.database.query("SELECT code FROM outbox.parked ORDER BY seq");
    expect(rows).toEqual([{ code: "BROKER_REJECTED" }, { code: "BROKER_REJECTED" }]);
  });

  it("lets rows of a missing topic wait without blocking others, and publishes them in order when it is there", async () => {
    await rig.createTopic("a");
    const { relay } = rig.startRelay({ batchRows: 10 });
    // More than a batch of them in front of all others.
    await rig.append(Array.from({ length: 35 }, (_, i) => toRow("absent", "k", `x${i}`)));
    for (let i = 0; i < 20; i += 1) await rig.append([toRow("a", "k", `a${i}`)]);
    await eventually(
      () => rig.waiting(),
      (rows) => rows === 35,
    );
    expect(texts(await rig.read("a"))).toEqual(Array.from({ length: 20 }, (_, i) => `a${i}`));
    await eventually(
      () => relay.health().heldTypes,
      (types) => types.includes("absent"),
    );
    await rig.createTopic("absent");
    await rig.drained(30_000);
    expect(firstOccurrences(texts(await rig.read("absent")))).toEqual(
      Array.from({ length: 35 }, (_, i) => `x${i}`),
    );
  });

  it("bounds a batch in bytes as well as in rows", async () => {
    await rig.createTopic("a");
    const sizes: number[] = [];
    const rows = Array.from({ length: 30 }, (_, i) =>
      toRow("a", `k${i}`, "", Buffer.alloc(i === 7 ? 300_000 : 40_000, i)),
    );
    await rig.append(rows);
    rig.startRelay({
      batchBytes: 200_000,
      steps: (steps) => ({
        ...steps,
        send: (events) => {
          sizes.push(events.reduce((sum, event) => sum + event.payload.length, 0));
          return steps.send(events);
        },
      }),
    });
    await rig.drained();
    // The row that crosses the limit still comes along.
    expect(Math.max(...sizes)).toBeLessThan(200_000 + 300_000);
    expect(await rig.read("a")).toHaveLength(30);
  });

  it("never has more than two batches in hand", async () => {
    await rig.createTopic("a");
    await rig.append(Array.from({ length: 400 }, (_, i) => toRow("a", `k${i}`, `m${i}`)));
    const inHand = new Set<bigint>();
    let most = 0;
    rig.startRelay({
      batchRows: 50,
      steps: (steps) => ({
        ...steps,
        read: async (request) => {
          const events = await steps.read(request);
          for (const event of events) inHand.add(event.seq);
          most = Math.max(most, inHand.size);
          return events;
        },
        remove: async (events) => {
          await steps.remove(events);
          for (const event of events) inHand.delete(event.seq);
        },
      }),
    });
    await rig.drained();
    expect(most).toBeLessThanOrEqual(150);
    expect(await rig.read("a")).toHaveLength(400);
  });

  it("tells how many rows wait and how old the oldest is", async () => {
    const metrics = createMetrics();
    await rig.append([toRow("absent", "k", "x"), toRow("absent", "k", "y")]);
    await rig.database.query(
      "UPDATE outbox.events SET created_at = created_at - interval '1 minute' WHERE seq = 1",
    );
    rig.startRelay({ metrics });
    await eventually(
      () => metrics.render(),
      (text) =>
        /fabric_outbox_backlog_rows 2\n/.test(text) && /fabric_outbox_backlog_age_seconds 6\d/.test(text),
    );
  });

  it("keeps the table small however many rows pass through", async () => {
    await rig.createTopic("a");
    rig.startRelay();
    const sizes: number[] = [];
    for (let cycle = 0; cycle < 24; cycle += 1) {
      await rig.append(Array.from({ length: 500 }, (_, i) => toRow("a", `k${i}`, "", Buffer.alloc(900, i))));
      await rig.drained();
      // What autovacuum does by the table's own settings; its launcher looks only once a minute.
      await rig.database.query("VACUUM outbox.events");
      const { rows } = await rig.database.query<{ bytes: bigint }>(
        "SELECT pg_total_relation_size('outbox.events') AS bytes",
      );
      sizes.push(Number(rows[0]?.bytes ?? 0));
    }
    // 24 times half a megabyte went through. How many pages wait for the next vacuum depends on who reads just then.
    expect(Math.max(...sizes)).toBeLessThan(2_500_000);
    const { rows } = await rig.database.query<{ reloptions: string[] }>(
      "SELECT reloptions FROM pg_class WHERE oid = 'outbox.events'::regclass",
    );
    expect(rows[0]?.reloptions).toEqual(
      expect.arrayContaining([
        "autovacuum_vacuum_scale_factor=0",
        "autovacuum_vacuum_threshold=5000",
        "autovacuum_vacuum_cost_delay=0",
      ]),
    );
  });

  it("ends what is in flight when it is stopped, and gives its lanes back", async () => {
    await rig.createTopic("a");
    await rig.append(Array.from({ length: 300 }, (_, i) => toRow("a", `k${i}`, `m${i}`)));
    let sends = 0;
    const running = rig.startRelay({
      batchRows: 50,
      steps: (steps) => ({
        ...steps,
        send: (events) => {
          sends += 1;
          if (sends === 3) void running.stop();
          return steps.send(events);
        },
      }),
    });
    await eventually(
      () => sends,
      (count) => count === 3,
    );
    await running.stop();
    const published = await rig.read("a");
    expect(published).toHaveLength(150);
    expect(await rig.waiting()).toBe(150);
    const leases = await rig.database.query("SELECT 1 FROM outbox.lane_leases WHERE relay_id IS NOT NULL");
    expect(leases.rows).toHaveLength(0);
    expect((await rig.database.query("SELECT 1 FROM outbox.relays")).rows).toHaveLength(0);
  });

  it("ends with a fatal fault when the outbox was never migrated", async () => {
    await rig.database.query("DROP FUNCTION outbox.renew_lanes");
    const ended = rig.startRelay().relay.run(AbortSignal.timeout(20_000));
    await expect(ended).rejects.toMatchObject({ code: "INTERNAL", kind: "fatal" });
  });
});
