import { setTimeout as wait } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { liveSteps } from "../../services/host/batch-steps.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openRelayRig } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import { saveCell, toCellVerdict } from "./ledger/cell-report.ts";
import { KilledService } from "./ledger/killed-service.ts";
import { prepareTraffic, Traffic, trafficType } from "./ledger/traffic.ts";
import { cleanVerdict, compareLedger } from "./ledger/verdict.ts";
import type { Verdict } from "./ledger/verdict.ts";
import type { ChildSettings } from "./processes/child.ts";

/** Load: 200 keys and more, 500 events a second and more, 16 transactions that overlap, 6 partitions. */
const keys = 240;
const writers = 16;
const eventsPerSecond = 600;
const partitions = 6;
const codec = memoryCodec();

let rig: RelayRig;
let sql: Database;
const services = new Set<KilledService>();

beforeEach(async () => {
  rig = await openRelayRig();
  sql = openDatabase({
    url: rig.testDatabase.url,
    applicationName: "kill-ledger",
    maxConnections: writers + 4,
  });
  await prepareTraffic(sql, keys);
  await rig.createTopic(trafficType, partitions);
});
afterEach(async () => {
  await Promise.all([...services].map((one) => one.kill()));
  services.clear();
  await sql.end();
  await rig.close();
});

const startTraffic = (): Traffic => {
  const traffic = new Traffic({ sql, encoder: () => codec, keys, writers, eventsPerSecond });
  traffic.start();
  return traffic;
};

const compare = (traffic: Traffic): Promise<Verdict> =>
  compareLedger({
    committed: traffic.committed,
    sql,
    decoder: codec,
    readTopic: () => rig.read(trafficType),
    deadlineMs: 120_000,
  });

function service(program: string, settings: Omit<ChildSettings, "brokers" | "topicPrefix">): KilledService {
  const brokers = inject("stack").kafkaBrokers;
  const one = new KilledService(program, { ...settings, brokers, topicPrefix: rig.prefix });
  services.add(one);
  return one;
}

function startAll(broken?: ChildSettings["broken"]) {
  const relayUrl = rig.testDatabase.roleUrl("fabric_relay");
  const hostUrl = rig.testDatabase.roleUrl("fabric_host");
  const all = {
    relays: ["relay-a", "relay-b"].map((name) => service("ledger-relay", { name, databaseUrl: relayUrl })),
    hosts: ["host-a", "host-b"].map((name) =>
      service("ledger-host", {
        name,
        databaseUrl: hostUrl,
        ...(broken === undefined ? {} : { broken }),
      }),
    ),
  };
  return {
    ...all,
    async start() {
      await Promise.all([...all.relays, ...all.hosts].map((one) => one.start()));
    },
    async end() {
      await Promise.all([...all.relays, ...all.hosts].map((one) => one.kill()));
    },
  };
}

describe("kills under load, and before each step of relay and host", () => {
  it(
    "lose nothing, double nothing in the projection, and keep the order of each key",
    { timeout: 600_000 },
    async () => {
      const all = startAll();
      await all.start();
      const traffic = startTraffic();
      const victims = [...all.relays, ...all.hosts];
      for (let kill = 0; kill < 16; kill += 1) {
        await wait(400 + ((kill * 137) % 900));
        const victim = victims[kill % victims.length];
        await victim?.kill();
        await victim?.start();
      }
      // Then before each step of theirs, so that all that was done before it is there and nothing after it.
      for (const step of ["read", "send", "remove"] as const) await all.relays[0]?.killIn(step);
      for (const { name } of liveSteps) await all.hosts[0]?.killIn(name);
      const { events, perSecond } = await traffic.stop();
      const verdict = await compare(traffic);
      await saveCell({
        name: "relay-host-killed",
        link: "relay, host",
        fault: "SIGKILL before each step",
        rounds: [],
        verdict: toCellVerdict(verdict),
      });
      console.info("kill ledger", { ...verdict, perSecond: Math.round(perSecond) });
      expect(events).toBeGreaterThan(5_000);
      expect(verdict.repeatedOnTopic).toBeGreaterThan(0);
      // At least once: a kill between the ack and the delete publishes again.
      expect(verdict).toEqual(cleanVerdict(events, verdict.repeatedOnTopic));
      await all.end();
    },
  );

  it("double the projection when the inbox claim is taken out", { timeout: 200_000 }, async () => {
    const all = startAll("no-inbox");
    await all.start();
    const traffic = startTraffic();
    await all.relays[0]?.killIn("remove");
    await all.relays[1]?.killIn("remove");
    await traffic.stop();
    const verdict = await compare(traffic);
    expect(verdict.lostOnTopic).toBe(0);
    expect(verdict.doubledInProjection).toBeGreaterThan(0);
    await all.end();
  });

  it(
    "lose from the projection when the position is committed before the work",
    { timeout: 200_000 },
    async () => {
      const all = startAll("watermark-first");
      await all.start();
      const traffic = startTraffic();
      await all.hosts[0]?.killIn("watermark-projection");
      await all.hosts[1]?.killIn("watermark-projection");
      await traffic.stop();
      const verdict = await compare(traffic);
      expect(verdict.lostOnTopic).toBe(0);
      expect(verdict.lostInProjection).toBeGreaterThan(0);
      await all.end();
    },
  );
});
