import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import { notifyOutbox } from "../../services/platform/outbox.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import { firstOccurrences, openRelayRig, toRow } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";
import type { TcpProxy } from "../harness/tcp-proxy.ts";

let rig: RelayRig;
let proxy: TcpProxy;
let proxied: Database;
beforeEach(async () => {
  rig = await openRelayRig();
  await rig.createTopic("a");
  const address = new URL(rig.testDatabase.url);
  proxy = await startTcpProxy({ host: address.hostname, port: Number(address.port) });
  address.hostname = proxy.host;
  address.port = String(proxy.port);
  proxied = openDatabase({
    url: address.href,
    applicationName: "relay-proxied",
    queryTimeoutMs: 1_000,
    connectTimeoutMs: 1_000,
  });
});
afterEach(async () => {
  // Relays end before the database that they use.
  await rig.close();
  await proxied.end();
  await proxy.close();
});

const keyed = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => toRow("a", "k", String(first + i)));
const seen = async (): Promise<string[]> => (await rig.read("a")).map((one) => one.value.toString());
const numbers = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

describe("relay and a database in trouble", () => {
  it("publishes everything, in order, when the database was away at the start and again in the middle", async () => {
    await rig.append(keyed(0, 100));
    await proxy.shut();
    const { relay } = rig.startRelay({ database: proxied, batchRows: 10, longestBackoffMs: 200 });
    await eventually(() => relay.health().fault?.code === "DATABASE_UNAVAILABLE");
    await proxy.open();
    await rig.drained();
    for (let round = 1; round <= 4; round += 1) {
      await rig.append(keyed(round * 100, 100));
      if (round % 2 === 0) proxy.reset();
      else {
        await proxy.shut();
        await proxy.open();
      }
      await rig.drained();
    }
    expect(firstOccurrences(await seen())).toEqual(numbers(500));
  });

  it("goes on after a black hole between it and the database", async () => {
    const { relay } = rig.startRelay({ database: proxied, longestBackoffMs: 200, leaseMs: 1_500 });
    await rig.append(keyed(0, 10));
    await rig.drained();
    proxy.swallow = "both";
    await rig.append(keyed(10, 10));
    await eventually(() => !relay.health().leaseValid);
    proxy.swallow = "none";
    await rig.drained(30_000);
    expect(firstOccurrences(await seen())).toEqual(numbers(20));
  });

  it("publishes again, under the same id, what was acknowledged and not deleted when it died", async () => {
    await rig.append(keyed(0, 30));
    let sent = 0;
    const dying = rig.startRelay({
      batchRows: 10,
      longestBackoffMs: 20,
      steps: (steps) => ({
        ...steps,
        send: async (events) => {
          const outcome = await steps.send(events);
          sent += outcome.acked.length;
          return outcome;
        },
        remove: () =>
          Promise.reject(new Fault("DATABASE_UNAVAILABLE", "planted: dead between ack and delete")),
      }),
    });
    await eventually(() => sent >= 20);
    await dying.stop();
    expect(await rig.waiting()).toBe(30);
    rig.startRelay();
    await rig.drained();
    const read = await rig.read("a");
    expect(read.length).toBeGreaterThanOrEqual(30 + 20);
    expect(firstOccurrences(read.map((one) => one.value.toString()))).toEqual(numbers(30));
  });

  it("sends nothing twice and reads no further while deletes fail", async () => {
    await rig.append(keyed(0, 100));
    let failing = true;
    const sizes: number[] = [];
    rig.startRelay({
      batchRows: 10,
      longestBackoffMs: 20,
      steps: (steps) => ({
        ...steps,
        send: (events) => {
          sizes.push(events.length);
          return steps.send(events);
        },
        remove: (events) =>
          failing
            ? Promise.reject(new Fault("DATABASE_UNAVAILABLE", "planted: read-only"))
            : steps.remove(events),
      }),
    });
    await eventually(() => sizes.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(sizes.length).toBeLessThanOrEqual(2);
    failing = false;
    await rig.drained();
    expect(await seen()).toEqual(numbers(100));
  });

  // brianc/node-postgres#967, timgit/pg-boss#850: LISTEN goes deaf without an error.
  it("publishes by polling while its listener is deaf, says so, and hears again by itself", async () => {
    const { relay } = rig.startRelay({
      database: { ...rig.database, listen: (...args) => proxied.listen(...args) },
      pollMs: 300,
    });
    await eventually(() => relay.health().listener === "live");
    proxy.swallow = "both";
    await rig.append(keyed(0, 1));
    notifyOutbox(rig.database);
    await rig.drained(5_000);
    await eventually(() => relay.health().listener === "stale", Boolean, { deadlineMs: 20_000 });
    proxy.swallow = "none";
    await eventually(() => relay.health().listener === "live", Boolean, { deadlineMs: 20_000 });
    expect(await seen()).toEqual(["0"]);
  });
});
