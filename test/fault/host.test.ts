import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { liveSteps } from "../../services/host/batch-steps.ts";
import type { Step } from "../../services/host/batch-steps.ts";
import { HostDied } from "../../services/host/run-slice.ts";
import { createKafkaConsumer } from "../../services/platform/kafka-consumer.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig } from "../harness/host-rig.ts";
import type { TcpProxy } from "../harness/tcp-proxy.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";

let rig: HostRig;
beforeEach(async () => {
  rig = await openHostRig();
});
afterEach(async () => {
  await rig.close();
});

const type = "agent.model.completed" as const;
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => modelEvent(from + index));

/** The live steps; the process is gone when `name` is about to run for the `nth` time. */
function dyingAt(name: Step["name"], nth: number): readonly Step[] {
  let runs = 0;
  return liveSteps.map((step) =>
    step.name !== name
      ? step
      : {
          ...step,
          run(work, tx) {
            runs += 1;
            return runs === nth ? Promise.reject(new HostDied(name)) : step.run(work, tx);
          },
        },
  );
}

describe("a host that dies", () => {
  it.each(liveSteps.map(({ name }) => [name]))(
    "counts every event once when it died before the step `%s`, and another takes over",
    async (name) => {
      await rig.createTopics([type], 2);
      await rig.publish(many(100));
      const first = rig.start([ledgerProcessor()], { steps: dyingAt(name, 2) });
      await eventually(() => first.health().get("ledger")?.reasons.includes("the host ended"));
      await first.stop();
      await rig.publish(many(100, 100));
      rig.start([ledgerProcessor()]);
      await eventually(
        () => rig.ledger(),
        ({ events }) => events >= 200,
        { deadlineMs: 20_000 },
      );
      expect(await rig.ledger()).toMatchObject({ rows: 200, events: 200 });
    },
  );
});

describe("a database in trouble", () => {
  it("counts every event once while its connections are ended again and again, and buries nothing", async () => {
    await rig.createTopics([type], 3);
    rig.start([ledgerProcessor()]);
    let sent = 0;
    for (let round = 0; round < 15; round += 1) {
      await rig.publish(many(40, sent));
      sent += 40;
      await rig.sql.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'host-under-test' AND datname = current_database()",
      );
    }
    await eventually(
      () => rig.ledger(),
      ({ events }) => events >= sent,
      { deadlineMs: 60_000 },
    );
    expect(await rig.ledger()).toMatchObject({ rows: sent, events: sent });
    expect(await rig.letters()).toEqual([]);
  });

  it("waits while the database is out of reach, is not handed the partition's fault, and goes on", async () => {
    const address = new URL(rig.database.roleUrl("fabric_host"));
    const proxy = await startTcpProxy({ host: address.hostname, port: Number(address.port) });
    address.hostname = proxy.host;
    address.port = String(proxy.port);
    const database = openDatabase({
      url: address.href,
      applicationName: "host-under-test",
      searchPath: ["host"],
      connectTimeoutMs: 500,
      queryTimeoutMs: 1_000,
    });
    try {
      await rig.createTopics([type], 2);
      await rig.publish(many(50));
      const host = rig.start([ledgerProcessor()], { database });
      await eventually(
        () => rig.ledger(),
        ({ rows }) => rows === 50,
      );
      await proxy.shut();
      await rig.publish(many(50, 50));
      await eventually(() =>
        host
          .health()
          .get("ledger")
          ?.partitions.some(({ status }) => status === "retrying"),
      );
      await proxy.open();
      await eventually(
        () => rig.ledger(),
        ({ rows }) => rows === 100,
        { deadlineMs: 30_000 },
      );
      // A network that swallows: no error, no end.
      proxy.swallow = "both";
      await rig.publish(many(50, 100));
      await eventually(() =>
        host
          .health()
          .get("ledger")
          ?.partitions.some(({ status }) => status === "retrying"),
      );
      proxy.swallow = "none";
      await eventually(
        () => rig.ledger(),
        ({ rows }) => rows === 150,
        { deadlineMs: 30_000 },
      );
      expect(await rig.ledger()).toMatchObject({ rows: 150, events: 150 });
      expect(await rig.letters()).toEqual([]);
      await host.stop();
    } finally {
      await database.end();
      await proxy.close();
    }
  });
});

describe("a broker in trouble", () => {
  let proxy: TcpProxy;
  beforeEach(async () => {
    const [host, port] = (inject("stack").kafkaBrokers[0] ?? "").split(":");
    proxy = await startTcpProxy({ host: host ?? "", port: Number(port) });
  });
  afterEach(async () => {
    await proxy.close();
  });
  const throughProxy = () =>
    rig.start([ledgerProcessor()], {
      openConsumer: (groupId, log) =>
        createKafkaConsumer({
          endpoint: { brokers: [`127.0.0.1:${proxy.port}`], clientId: "through-proxy" },
          route: () => ({ host: "127.0.0.1", port: proxy.port }),
          groupId,
          log,
          sessionTimeoutMs: 6_000,
          rebalanceTimeoutMs: 6_000,
          heartbeatIntervalMs: 500,
        }),
    });

  // tulios/kafkajs#659: after a cut the consumer stays connected, heartbeats, and fetches nothing.
  it("goes on within half a minute after connections were reset, refused, or went silent", async () => {
    await rig.createTopics([type], 3);
    await rig.publish(many(30));
    throughProxy();
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows === 30,
      { deadlineMs: 20_000 },
    );
    proxy.reset();
    await rig.publish(many(30, 30));
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 60,
      { deadlineMs: 30_000 },
    );
    await proxy.shut();
    await rig.publish(many(30, 60));
    await eventually(() => rig.lines.some(({ msg }) => /down/.test(msg)) || proxy.accepted > 0);
    await proxy.open();
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 90,
      { deadlineMs: 30_000 },
    );
    proxy.swallow = "both";
    await rig.publish(many(30, 90));
    // Longer than the session: the group has given the partitions away meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 9_000));
    proxy.swallow = "none";
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 120,
      { deadlineMs: 30_000 },
    );
    expect(await rig.ledger()).toMatchObject({ rows: 120, events: 120 });
  });
});
