import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig, stepsWith } from "../harness/host-rig.ts";

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

describe("host", () => {
  it("projects every event once and commits last + 1 to the group, so that a restart is handed nothing", async () => {
    await rig.createTopics([type], 3);
    await rig.publish(many(500));
    const first = rig.start([ledgerProcessor()]);
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 500,
    );
    await first.stop();
    expect(await rig.ledger()).toMatchObject({ rows: 500, events: 500 });
    const ends = await rig.admin.fetchTopicOffsets(rig.topicOf(type));
    const committed = await rig.committed(type);
    const watermarks = await rig.watermarks();
    for (const { partition, high } of ends) {
      expect(watermarks.get(`${type}/${partition}`)).toBe(BigInt(high));
      if (high !== "0") expect(committed.get(partition)).toBe(BigInt(high));
    }

    const second = rig.start([ledgerProcessor()]);
    await rig.publish(many(1, 500));
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 501,
    );
    expect(await rig.ledger()).toMatchObject({ rows: 501, events: 501 });
    expect(await second.render()).not.toContain("fabric_host_duplicates_total{");
  });

  it("begins at the watermark, whatever the group's offset says", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(50));
    const first = rig.start([ledgerProcessor()]);
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 50,
    );
    await first.stop();
    await rig.admin.setOffsets({
      groupId: `${rig.prefix}ledger`,
      topic: rig.topicOf(type),
      partitions: [{ partition: 0, offset: "0" }],
    });
    // With the inbox gone too, only the watermark can know (a pruned inbox, a consumer that was down for longer).
    await rig.sql.query("DELETE FROM host.inbox");
    rig.start([ledgerProcessor()]);
    await rig.publish(many(10, 50));
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 60,
    );
    expect(await rig.ledger()).toMatchObject({ rows: 60, events: 60 });
  });

  it("counts once what was published twice", async () => {
    await rig.createTopics([type], 2);
    const events = many(100);
    await rig.publish(events, { partition: 0 });
    await rig.publish(events, { partition: 0 });
    await rig.publish(events, { partition: 1 });
    await rig.publish([modelEvent(1_000)], { partition: 1 });
    const host = rig.start([ledgerProcessor()]);
    await eventually(
      () => rig.watermarks(),
      (marks) => marks.get(`${type}/0`) === 200n && marks.get(`${type}/1`) === 101n,
    );
    expect(await rig.ledger()).toMatchObject({ rows: 101, events: 101 });
    const text = await host.render();
    const duplicates = [...text.matchAll(/fabric_host_duplicates_total\{[^}]*why="inbox"\} (\d+)/g)];
    expect(duplicates.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(200);
  });

  it("counts each event once while members come and go", async () => {
    await rig.createTopics([type], 6);
    const first = rig.start([ledgerProcessor()]);
    let sent = 0;
    const send = async (): Promise<void> => {
      await rig.publish(many(60, sent));
      sent += 60;
    };
    await send();
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows > 0,
    );
    const second = rig.start([ledgerProcessor()]);
    for (let round = 0; round < 10; round += 1) await send();
    await eventually(
      () => second.health().get("ledger")?.partitions.length,
      (owned) => owned === 3,
      { deadlineMs: 20_000 },
    );
    for (let round = 0; round < 10; round += 1) await send();
    await first.stop();
    for (let round = 0; round < 10; round += 1) await send();
    await eventually(
      () => rig.ledger(),
      ({ events }) => events >= sent,
      { deadlineMs: 20_000 },
    );
    expect(await rig.ledger()).toMatchObject({ rows: sent, events: sent });
  });

  it("gives each processor its own group and inbox", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(20));
    rig.start([ledgerProcessor(), ledgerProcessor({ name: "second-ledger" })]);
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows >= 40,
    );
    expect(await rig.ledger()).toMatchObject({ rows: 40, events: 20 });
    expect((await rig.committed(type, "second-ledger")).get(0)).toBe(20n);
  });

  it("leaves out a topic that does not exist, says so, and takes it up when it appears", async () => {
    await rig.createTopics(["agent.session.ended"]);
    const host = rig.start([
      { ...ledgerProcessor(), topics: ["agent.session.ended", "agent.model.completed"] },
    ]);
    await eventually(
      () => host.health().get("ledger"),
      (health) => health?.partitions.length === 1,
    );
    expect(host.health().get("ledger")).toMatchObject({ ready: false });
    await eventually(
      () => host.render(),
      (text) => /fabric_host_topic_missing\{[^}]*agent\.model\.completed"\} 1/.test(text),
      { what: "the metric" },
    );
    await rig.createTopics([type]);
    await rig.publish(many(5));
    await eventually(
      () => rig.ledger(),
      ({ rows }) => rows === 5,
      { deadlineMs: 20_000 },
    );
    await eventually(() => host.health().get("ledger")?.ready);
  });

  it("keeps its partitions through a batch that takes longer than the session", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(5));
    const host = rig.start([ledgerProcessor()], {
      steps: stepsWith({
        commit: () => new Promise((resolve) => setTimeout(resolve, 8_000)),
      }),
    });
    await eventually(
      () => rig.watermarks(),
      (marks) => marks.get(`${type}/0`) === 5n,
      { deadlineMs: 20_000 },
    );
    expect(await rig.ledger()).toMatchObject({ rows: 5 });
    await eventually(async () => (await rig.committed(type)).get(0) === 5n);
    expect(
      rig.lines.filter(({ msg, state }) => msg === "consumer state" && state === "running"),
    ).toHaveLength(1);
    expect(await host.render()).not.toMatch(/fabric_host_fenced_total\{[^}]*\} [1-9]/);
  });

  it("is not ready, and says so in a gauge, while there is lag and no progress", async () => {
    await rig.createTopics([type]);
    let release: () => void = () => undefined;
    const hold = new Promise<void>((resolve) => (release = resolve));
    const host = rig.start([ledgerProcessor()], {
      steps: stepsWith({ commit: () => hold }),
      timings: { watchMs: 100, stallMs: 600, heartbeatMs: 200 },
    });
    await eventually(() => host.health().get("ledger")?.partitions.length === 1);
    expect(host.health().get("ledger")).toMatchObject({ ready: true, reasons: [] });
    await rig.publish(many(5));
    await eventually(() => host.health().get("ledger")?.ready === false);
    expect(host.health().get("ledger")?.reasons[0]).toMatch(/makes no progress/);
    await eventually(async () => /fabric_host_no_progress\{[^}]*\} 1/.test(await host.render()));
    await eventually(
      () => host.render(),
      (text) => /fabric_host_lag_records\{[^}]*\} 5/.test(text),
      { what: "the metric" },
    );
    release();
    await eventually(() => host.health().get("ledger")?.ready);
    await eventually(async () => /fabric_host_no_progress\{[^}]*\} 0/.test(await host.render()));
  });
});
