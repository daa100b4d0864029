import { setTimeout as wait } from "node:timers/promises";
import type { Admin, Message } from "kafkajs";
import { CompressionTypes, Kafka, logLevel } from "kafkajs";
import { eventually } from "../harness/eventually.ts";
import { eventIdOf } from "./bench-events.ts";

/** The baselines' number of partitions. */
export const benchPartitions = 6;

/** How long a run may stand still before it counts as broken. */
const stallDeadlineMs = 60_000;
const watchPollMs = 10;

/** A silent client of the stack's broker. */
export function openKafka(brokers: readonly string[]): Kafka {
  return new Kafka({ brokers: [...brokers], clientId: "fabric-bench", logLevel: logLevel.NOTHING });
}

/** Makes a topic and waits until every partition answers: a busy broker takes a while to know its own topics. */
export async function createTopic(admin: Admin, topic: string): Promise<void> {
  await admin.createTopics({
    waitForLeaders: false,
    topics: [{ topic, numPartitions: benchPartitions, replicationFactor: 1 }],
  });
  await eventually(
    () => admin.fetchTopicOffsets(topic),
    (offsets) => offsets.length === benchPartitions,
    { deadlineMs: 30_000, what: `the partitions of ${topic}` },
  );
}

/** Records in the topic, as the broker counts them. */
export async function countRecords(admin: Admin, topic: string): Promise<number> {
  const offsets = await admin.fetchTopicOffsets(topic);
  return offsets.reduce((sum, { high }) => sum + Number(high), 0);
}

/** Records per second, by the broker's own end offsets; the same observer for every contestant. */
export interface TopicRates {
  /** From the first records to the last one. */
  readonly whole: number;
  /** The second half alone: a runtime that compiles while it runs is warm by then. */
  readonly secondHalf: number;
}

/** Watches a topic fill up to `expected` records. Throws when it stands still for a minute, or when `broken` rejects. */
export async function watchTopic(
  admin: Admin,
  topic: string,
  expected: number,
  broken: Promise<never>,
): Promise<TopicRates> {
  const samples: { readonly atMs: number; readonly records: number }[] = [];
  let grownAtMs = performance.now();
  for (;;) {
    const records = await Promise.race([countRecords(admin, topic), broken]);
    const atMs = performance.now();
    if (records > (samples.at(-1)?.records ?? 0)) {
      samples.push({ atMs, records });
      grownAtMs = atMs;
    }
    if (records >= expected) break;
    if (atMs - grownAtMs > stallDeadlineMs) {
      throw new Error(`${topic} stands still at ${String(records)} of ${String(expected)} records`);
    }
    await wait(watchPollMs);
  }
  const last = samples.at(-1);
  const rateFrom = (least: number): number => {
    const from = samples.find(({ records }) => records >= least);
    if (from === undefined || last === undefined || last.atMs === from.atMs) return Number.NaN;
    return ((last.records - from.records) / (last.atMs - from.atMs)) * 1000;
  };
  return { whole: rateFrom(1), secondHalf: rateFrom(expected / 2) };
}

/** Reads a topic to its end and compares it with the events that were to come: each once. */
export async function checkRecords(
  kafka: Kafka,
  topic: string,
  expectedIds: ReadonlySet<string>,
): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  const total = await countRecords(admin, topic).finally(() => admin.disconnect());
  const seen = new Set<string>();
  let repeated = 0;
  let foreign = 0;
  let read = 0;
  if (total > 0) {
    const consumer = kafka.consumer({ groupId: `${topic}.check`, maxWaitTimeInMs: 100 });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    let done: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => (done = resolve));
    await consumer.run({
      autoCommit: false,
      eachBatch: ({ batch }) => {
        for (const { value } of batch.messages) {
          read += 1;
          const id = value === null ? "" : eventIdOf(value);
          if (!expectedIds.has(id)) foreign += 1;
          else if (seen.has(id)) repeated += 1;
          else seen.add(id);
        }
        if (read >= total) done();
        return Promise.resolve();
      },
    });
    await Promise.race([finished, wait(stallDeadlineMs, undefined, { ref: false })]);
    await consumer.disconnect();
  }
  const lost = expectedIds.size - seen.size;
  if (lost > 0 || repeated > 0 || foreign > 0) {
    throw new Error(
      `${topic}: ${String(lost)} lost, ${String(repeated)} repeated, ${String(foreign)} foreign of ${String(expectedIds.size)} events`,
    );
  }
}

/** Writes prepared messages into a topic, fast and once. */
export async function fillTopic(kafka: Kafka, topic: string, messages: readonly Message[]): Promise<void> {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  for (let at = 0; at < messages.length; at += 1000) {
    await producer.send({
      topic,
      acks: -1,
      compression: CompressionTypes.None,
      messages: messages.slice(at, at + 1000),
    });
  }
  await producer.disconnect();
}
