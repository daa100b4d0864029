import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Choice } from "../../services/recovery/gaps.ts";
import { listGaps, resumePartition } from "../../services/recovery/gaps.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig } from "../harness/host-rig.ts";

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
const deadlineMs = 25_000;
const untilRead = (offset: bigint) =>
  eventually(
    () => rig.watermarks(),
    (marks) => marks.get(`${type}/0`) === offset,
    { deadlineMs },
  );
const untilStopped = (cause: string) =>
  eventually(
    () => listGaps(rig.recovery()),
    (gaps) => gaps.length === 1 && gaps[0]?.cause === cause,
    { deadlineMs, what: `a partition that is stopped for ${cause}` },
  );
const removeTopic = async (): Promise<void> => {
  await rig.admin.deleteTopics({ topics: [rig.topicOf(type)] });
  await eventually(async () => !(await rig.admin.listTopics()).includes(rig.topicOf(type)));
};
/** Kafka forgets a deleted topic in its own time. */
const makeTopic = () =>
  eventually(
    async () => {
      await rig.createTopics([type]);
      return true;
    },
    Boolean,
    { deadlineMs },
  );
const resume = (choice: Choice) =>
  resumePartition(rig.recovery(), { consumer: "ledger", topic: rig.topicOf(type), partition: 0 }, choice, {
    by: "ann",
    reason: "the topic was made anew on purpose",
  });
const said = async (of: Envelope["type"]): Promise<Envelope[]> =>
  (await rig.outbox()).filter((event) => event.type === of);

describe("a gap", () => {
  it("stops at a topic that was made anew while nobody read, also when its log is longer than the position", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(5));
    const first = rig.start([ledgerProcessor()]);
    await untilRead(5n);
    await first.stop();
    await removeTopic();
    await makeTopic();
    await rig.publish(many(9, 100));
    const second = rig.start([ledgerProcessor()]);
    await untilStopped("topic_recreated");
    expect(second.health().get("ledger")?.ready).toBe(false);
    expect(await rig.ledger()).toMatchObject({ rows: 5 });
    expect(await said("fabric.gap.found")).toMatchObject([
      { redacted_summary: { cause: "topic_recreated", expected_offset: 5n, found_offset: 0n } },
    ]);
    await resume({ kind: "log_start" });
    await untilRead(9n);
    expect(await rig.ledger()).toMatchObject({ rows: 14, events: 14 });
    // What it stands in from here on is the new topic: a restart finds nothing to stop for.
    await second.stop();
    const third = rig.start([ledgerProcessor()]);
    await eventually(() => third.health().get("ledger")?.partitions[0]?.status === "running");
    expect(await listGaps(rig.recovery())).toEqual([]);
  });

  it("stops at a topic that is made anew under a running consumer", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(5));
    rig.start([ledgerProcessor()]);
    await untilRead(5n);
    await removeTopic();
    await makeTopic();
    await rig.publish(many(9, 100));
    const [gap] = await eventually(
      () => listGaps(rig.recovery()),
      (gaps) => gaps.length === 1,
      { deadlineMs },
    );
    // Two looks may have missed it before it was there again.
    expect(["topic_recreated", "topic_missing"]).toContain(gap?.cause);
    expect(await said("fabric.gap.found")).toMatchObject([
      { redacted_summary: { expected_offset: gap?.stopped_offset } },
    ]);
    await resume({ kind: "log_start" });
    await untilRead(9n);
  });

  it("stops at a topic that was deleted, and stands still in the one that is made in its place", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(5));
    const host = rig.start([ledgerProcessor()]);
    await untilRead(5n);
    await removeTopic();
    const [gap] = await untilStopped("topic_missing");
    expect(gap).toMatchObject({ stopped_offset: 5n, log_start: null, log_end: null });
    await expect(resume({ kind: "log_start" })).rejects.toMatchObject({ code: "TOPIC_MISSING" });
    expect(await said("fabric.gap.found")).toMatchObject([
      { redacted_summary: { cause: "topic_missing", expected_offset: 5n } },
    ]);
    await makeTopic();
    await rig.publish(many(3, 100));
    await eventually(() => host.health().get("ledger")?.partitions[0]?.status === "stopped", Boolean, {
      deadlineMs,
    });
    expect(await rig.ledger()).toMatchObject({ rows: 5 });
    await resume({ kind: "log_start" });
    await untilRead(3n);
    expect(await rig.ledger()).toMatchObject({ rows: 8, events: 8 });
  });

  it("is no gap when a topic that nobody has read comes and goes", async () => {
    await rig.createTopics(["agent.session.ended"]);
    const host = rig.start([{ ...ledgerProcessor(), topics: ["agent.session.ended", type] }]);
    await eventually(() => host.health().get("ledger")?.partitions.length === 1);
    await eventually(() =>
      host
        .health()
        .get("ledger")
        ?.reasons.some((one) => one.includes("does not exist")),
    );
    expect(await listGaps(rig.recovery())).toEqual([]);
    expect(await rig.outbox()).toEqual([]);
  });
});

describe("a resumed partition", () => {
  /** Ten records read, ten more written, retention takes all up to 15. */
  const stop = async () => {
    await rig.createTopics([type]);
    await rig.publish(many(10));
    const first = rig.start([ledgerProcessor()]);
    await untilRead(10n);
    await first.stop();
    await rig.publish(many(10, 10));
    await rig.admin.fetchTopicOffsets(rig.topicOf(type));
    await rig.admin.deleteTopicRecords({
      topic: rig.topicOf(type),
      partitions: [{ partition: 0, offset: "15" }],
    });
    rig.start([ledgerProcessor()]);
    return untilStopped("retention");
  };

  it("goes on where a person says, and the choice is an event", async () => {
    expect(await stop()).toMatchObject([
      { consumer: "ledger", stopped_offset: 10n, log_start: 15n, log_end: 20n },
    ]);
    await expect(resume({ kind: "offset", offset: 12n })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    await expect(resume({ kind: "offset", offset: 21n })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    expect(await said("fabric.gap.resumed")).toEqual([]);
    await resume({ kind: "offset", offset: 17n });
    await untilRead(20n);
    expect(await rig.ledger()).toMatchObject({ rows: 13 });
    expect(await said("fabric.gap.resumed")).toMatchObject([
      {
        tenant_id: "fabric",
        origin: "human",
        actor: { user_id: "ann" },
        redacted_summary: {
          consumer: "ledger",
          cause: "retention",
          choice: "offset",
          stopped_offset: 10n,
          resumed_offset: 17n,
          resumed_by: "ann",
        },
      },
    ]);
    await expect(resume({ kind: "log_start" })).rejects.toMatchObject({ code: "GAP_UNKNOWN" });
  });

  it("begins at the end of the log when a person gives up what is in it", async () => {
    await stop();
    expect(await resume({ kind: "log_end" })).toMatchObject({ resumed_offset: 20n });
    await rig.publish(many(1, 99));
    await untilRead(21n);
    expect(await rig.ledger()).toMatchObject({ rows: 11 });
  });
});
