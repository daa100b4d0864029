import { randomBytes } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import type { Admin, Producer } from "kafkajs";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import type {
  BatchControl,
  ConsumerHandlers,
  ConsumerPort,
  LogRecord,
  RecordBatch,
  TopicPartition,
} from "../../services/platform/kafka-consumer.ts";
import { createKafkaConsumer } from "../../services/platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../../services/platform/kafka-offsets.ts";
import { createLog } from "../../services/platform/log.ts";
import { eventually } from "../harness/eventually.ts";
import { createTopics } from "../harness/topics.ts";

/** Clients that the host may run on. Each passes the same promises. */
const clients: readonly [string, (groupId: string) => ConsumerPort][] = [
  [
    "kafkajs",
    (groupId) =>
      createKafkaConsumer({
        endpoint: { brokers: inject("stack").kafkaBrokers, clientId: "contract" },
        groupId,
        log: createLog({ service: "contract", level: "silent" }),
        sessionTimeoutMs: 6_000,
        rebalanceTimeoutMs: 6_000,
        heartbeatIntervalMs: 300,
        rejoinMinMs: 50,
        rejoinMaxMs: 500,
      }),
  ],
];

describe.each(clients)("consumer port over %s", (_name, open) => {
  let admin: Admin;
  let producer: Producer;
  let prefix: string;
  let group: string;
  const opened: ConsumerPort[] = [];
  const topics: string[] = [];

  beforeEach(async () => {
    const kafka = new Kafka({
      clientId: "contract-rig",
      brokers: [...inject("stack").kafkaBrokers],
      logLevel: logLevel.NOTHING,
    });
    admin = kafka.admin();
    producer = kafka.producer();
    await Promise.all([admin.connect(), producer.connect()]);
    prefix = `c${randomBytes(5).toString("hex")}.`;
    group = `${prefix}group`;
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.stop()));
    await admin.deleteGroups([group]).catch(() => undefined);
    await admin.deleteTopics({ topics: topics.splice(0) }).catch(() => undefined);
    await Promise.all([admin.disconnect(), producer.disconnect()]);
  });

  const topic = async (name: string, partitions = 1): Promise<string> => {
    topics.push(prefix + name);
    await createTopics(admin, [{ topic: prefix + name, numPartitions: partitions }]);
    return prefix + name;
  };
  const publish = (to: string, count: number, partition = 0, from = 0) =>
    producer.send({
      topic: to,
      messages: Array.from({ length: count }, (_, index) => ({
        key: "k",
        value: String(from + index),
        partition,
        headers: { h: "v" },
      })),
    });
  const committed = async (of: string): Promise<Map<number, string>> => {
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [of] });
    return new Map(found?.partitions.map(({ partition, offset }) => [partition, offset]));
  };

  /** A member that keeps what it saw, and begins every partition at `start`. */
  function member(
    of: readonly string[],
    handlers: Partial<ConsumerHandlers> = {},
    start: (partition: TopicPartition) => bigint = () => 0n,
  ) {
    const seen: (TopicPartition & { record: LogRecord })[] = [];
    const assigned: (readonly TopicPartition[])[] = [];
    const states: string[] = [];
    const port = open(group);
    opened.push(port);
    const keep = (batch: RecordBatch): void => {
      for (const record of batch.records)
        seen.push({ topic: batch.topic, partition: batch.partition, record });
    };
    port.start({
      topics: () => Promise.resolve(of),
      assigned(partitions) {
        assigned.push(partitions);
        return Promise.resolve(partitions.map((one) => ({ ...one, offset: start(one) })));
      },
      async batch(batch, control) {
        keep(batch);
        await control.commit(batch.lastOffset + 1n);
      },
      state: (state) => states.push(state),
      ...handlers,
    });
    return { port, seen, assigned, states, keep };
  }

  it("begins where it is told, whatever was committed, and hands over key, value, headers and time", async () => {
    const a = await topic("a");
    await publish(a, 10);
    await admin.setOffsets({ groupId: group, topic: a, partitions: [{ partition: 0, offset: "9" }] });
    const { seen } = member([a], {}, () => 4n);
    await eventually(() => seen.length === 6);
    expect(seen[0]?.record).toMatchObject({ offset: 4n, key: Buffer.from("k"), value: Buffer.from("4") });
    expect(String(seen[0]?.record.headers["h"])).toBe("v");
    expect(seen[0]?.record.timestampMs).toBeGreaterThan(Date.now() - 60_000);
    await eventually(async () => (await committed(a)).get(0) === "10");
  });

  it("keeps the order within a partition", async () => {
    const a = await topic("a", 3);
    for (let round = 0; round < 5; round += 1) {
      for (const partition of [0, 1, 2]) await publish(a, 20, partition, round * 20);
    }
    const { seen } = member([a]);
    await eventually(() => seen.length === 300);
    for (const partition of [0, 1, 2]) {
      const offsets = seen.filter((one) => one.partition === partition).map((one) => one.record.offset);
      expect(offsets).toEqual(Array.from({ length: 100 }, (_, index) => BigInt(index)));
    }
  });

  it("delivers nothing of a partition that was left out, until it is resumed, and then from there", async () => {
    const a = await topic("a", 2);
    await publish(a, 5, 0);
    await publish(a, 5, 1);
    const { port, seen } = member([a], {
      assigned: (partitions) =>
        Promise.resolve(
          partitions.filter((one) => one.partition === 1).map((one) => ({ ...one, offset: 0n })),
        ),
    });
    await eventually(() => seen.length === 5);
    expect(seen.every((one) => one.partition === 1)).toBe(true);
    port.resume({ topic: a, partition: 0 }, 2n);
    await eventually(() => seen.length === 8);
    expect(seen.filter((one) => one.partition === 0).map((one) => one.record.offset)).toEqual([2n, 3n, 4n]);
  });

  it("delivers again from where a paused partition is resumed, and goes on with the others meanwhile", async () => {
    const a = await topic("a", 2);
    await publish(a, 3, 0);
    await publish(a, 3, 1);
    let failing = true;
    const tries: bigint[] = [];
    const { port, seen } = member([a], {
      async batch(batch, control) {
        if (batch.partition === 0) {
          tries.push(batch.records[0]?.offset ?? -1n);
          if (failing) {
            port.pause(batch);
            return;
          }
        }
        for (const record of batch.records) seen.push({ ...batch, record });
        await control.commit(batch.lastOffset + 1n);
      },
    });
    await eventually(() => tries.length === 1);
    await publish(a, 3, 1);
    await eventually(() => seen.length === 6);
    expect(tries).toEqual([0n]);
    failing = false;
    port.resume({ topic: a, partition: 0 }, 0n);
    await eventually(() => seen.length === 9);
    expect(tries).toEqual([0n, 0n]);
    expect((await committed(a)).get(0)).toBe("3");
  });

  it("hands over nothing that was fetched before a partition began anew, or after it was paused", async () => {
    const a = await topic("a", 2);
    await publish(a, 5, 0);
    const tries: bigint[] = [];
    let release: () => void = () => undefined;
    const hold = new Promise<void>((resolve) => (release = resolve));
    const { port, seen } = member([a], {
      async batch(batch, control) {
        if (batch.partition === 0) {
          tries.push(batch.fetchedFrom);
          if (tries.length === 1) await hold;
        }
        for (const record of batch.records) seen.push({ ...batch, record });
        await control.commit(batch.lastOffset + 1n);
      },
    });
    await eventually(() => tries.length === 1);
    await publish(a, 5, 0, 5);
    // What comes of the other partition shows that the next batch of the first one was fetched as well.
    await publish(a, 5, 1);
    await eventually(() => seen.filter((one) => one.partition === 1).length === 5);
    port.pause({ topic: a, partition: 0 });
    release();
    await publish(a, 5, 1, 5);
    await eventually(() => seen.filter((one) => one.partition === 1).length === 10);
    expect(tries).toEqual([0n]);
    port.resume({ topic: a, partition: 0 }, 2n);
    await eventually(() => tries.length > 1);
    expect(tries[1]).toBe(2n);
  });

  it("fetches the next batch while one is in hand, and hands it over after it", async () => {
    const a = await topic("a");
    await publish(a, 5);
    const lines: string[] = [];
    let release: () => void = () => undefined;
    const hold = new Promise<void>((resolve) => (release = resolve));
    member([a], {
      async batch(batch, control) {
        lines.push(`begin ${batch.fetchedFrom}`);
        if (batch.fetchedFrom === 0n) await hold;
        lines.push(`end ${batch.fetchedFrom}`);
        await control.commit(batch.lastOffset + 1n);
      },
    });
    await eventually(() => lines.length === 1);
    await publish(a, 5, 0, 5);
    release();
    await eventually(async () => (await committed(a)).get(0) === "10");
    expect(lines).toEqual(["begin 0", "end 0", "begin 5", "end 5"]);
  });

  // tulios/kafkajs#1046: a member goes on handling and committing a partition that a rebalance gave away.
  it("commits nothing for a partition that a rebalance gave away while its batch was in hand", async () => {
    const a = await topic("a", 2);
    await publish(a, 5, 0);
    await publish(a, 5, 1);
    const held: { control: BatchControl; batch: RecordBatch }[] = [];
    let release: () => void = () => undefined;
    const hold = new Promise<void>((resolve) => (release = resolve));
    const outcomes: boolean[] = [];
    const first = member([a], {
      async batch(batch, control) {
        held.push({ control, batch });
        await hold;
        outcomes.push(await control.commit(batch.lastOffset + 1n));
      },
    });
    await eventually(() => held.length === 2);
    const second = member([a]);
    await eventually(() => second.seen.length === 5, Boolean, { deadlineMs: 20_000 });
    const given = second.seen[0]?.partition ?? -1;
    await publish(a, 1, given, 5);
    await eventually(async () => (await committed(a)).get(given) === "6");
    expect(held.every(({ control }) => !control.isCurrent())).toBe(true);
    release();
    // The partition that it kept is handed over again, under the new assignment.
    await eventually(async () => (await committed(a)).get(1 - given) === "5");
    expect(outcomes).toEqual([false, false, true]);
    expect(held[2]?.batch.partition).toBe(1 - given);
    expect(first.assigned.at(-1)).toHaveLength(1);
    expect((await committed(a)).get(given)).toBe("6");
  });

  it("shares partitions between members and gives them back when one stops, batch in hand committed", async () => {
    const a = await topic("a", 4);
    const first = member([a]);
    await eventually(() => first.assigned.at(-1)?.length === 4);
    const second = member([a]);
    await eventually(() => second.assigned.at(-1)?.length === 2 && first.assigned.at(-1)?.length === 2);
    for (const partition of [0, 1, 2, 3]) await publish(a, 5, partition);
    await eventually(() => first.seen.length + second.seen.length >= 20);
    await second.port.stop();
    expect(second.states.at(-1)).toBe("stopped");
    await eventually(() => first.assigned.at(-1)?.length === 4);
    await eventually(async () => [...(await committed(a)).values()].every((offset) => offset === "5"));
  });

  it("tells where a fetch began, so that a silent jump past deleted records shows", async () => {
    const a = await topic("a");
    await publish(a, 10);
    await admin.fetchTopicOffsets(a);
    await admin.deleteTopicRecords({ topic: a, partitions: [{ partition: 0, offset: "6" }] });
    const batches: RecordBatch[] = [];
    member([a], {
      async batch(batch, control) {
        batches.push(batch);
        await control.commit(batch.lastOffset + 1n);
      },
    });
    await eventually(() => batches.length > 0, Boolean, { deadlineMs: 20_000 });
    expect(batches[0]).toMatchObject({ fetchedFrom: 6n, logEnd: 10n, lastOffset: 9n });
  });

  it("asks for its topics again at a restart, and waits while there is none", async () => {
    const a = await topic("a");
    await publish(a, 3);
    let known: readonly string[] = [];
    const { port, seen, states } = member([], { topics: () => Promise.resolve(known) });
    await eventually(() => states.includes("down"));
    known = [a];
    await eventually(() => seen.length === 3);
    const b = await topic("b");
    await publish(b, 2);
    known = [a, b];
    port.restart("a topic came");
    await eventually(() => seen.filter((one) => one.topic === b).length === 2);
  });

  it("says where a log begins and ends, and which topics exist", async () => {
    const a = await topic("a", 2);
    await publish(a, 4, 1);
    const offsets = createKafkaOffsets({
      endpoint: { brokers: inject("stack").kafkaBrokers, clientId: "contract" },
      log: createLog({ service: "contract", level: "silent" }),
    });
    expect([...(await offsets.ends(a))].sort((one, other) => one.partition - other.partition)).toEqual([
      { partition: 0, earliest: 0n, latest: 0n },
      { partition: 1, earliest: 0n, latest: 4n },
    ]);
    expect([...(await offsets.existing([a, `${prefix}none`])).keys()]).toEqual([a]);
    await expect(offsets.ends(`${prefix}none`)).rejects.toMatchObject({ code: "TOPIC_MISSING" });
    await offsets.close();
  });
});
