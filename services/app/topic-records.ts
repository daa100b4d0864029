import { randomUUID } from "node:crypto";
import type { Config } from "../platform/config.ts";
import { toTopicName } from "../platform/kafka-admin.ts";
import { createKafkaConsumer } from "../platform/kafka-consumer.ts";
import type { LogRecord } from "../platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import { createLog } from "../platform/log.ts";
import { kafkaEndpoint } from "./wiring.ts";

/** A record as it stands on a topic. */
export interface TopicRecord {
  readonly eventId: string;
  readonly type: string;
  readonly tenantId: string;
  readonly key: string;
  readonly value: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Every record of the topics up to their present ends; with `wanted`, those event ids alone. */
export async function readTopicRecords(
  config: Config,
  types: readonly string[],
  wanted?: ReadonlySet<string>,
): Promise<TopicRecord[]> {
  const endpoint = kafkaEndpoint(config, "fabric-reader");
  const log = createLog({ service: "reader", level: "error" });
  const offsets = createKafkaOffsets({ endpoint, log });
  const consumer = createKafkaConsumer({
    endpoint,
    groupId: `fabric-reader-${randomUUID()}`,
    log,
    maxWaitMs: 100,
  });
  const typeOf = new Map(types.map((type) => [toTopicName(config.kafka.topicPrefix, type), type]));
  const left = new Map<string, bigint>();
  const starts = new Map<string, bigint>();
  for (const topic of typeOf.keys()) {
    for (const { partition, earliest, latest } of await offsets.ends(topic)) {
      const name = `${topic}/${String(partition)}`;
      starts.set(name, earliest);
      if (latest > earliest) left.set(name, latest);
    }
  }
  const found: TopicRecord[] = [];
  try {
    if (left.size === 0) return found;
    await new Promise<void>((resolve) => {
      consumer.start({
        topics: () => Promise.resolve([...typeOf.keys()]),
        assigned: (partitions) =>
          Promise.resolve(
            partitions
              .filter((one) => left.has(`${one.topic}/${String(one.partition)}`))
              .map((one) => ({ ...one, offset: starts.get(`${one.topic}/${String(one.partition)}`) ?? 0n })),
          ),
        batch: (batch) => {
          const name = `${batch.topic}/${String(batch.partition)}`;
          const end = left.get(name);
          if (end === undefined) return Promise.resolve();
          for (const record of batch.records) {
            if (record.offset >= end) break;
            const one = toTopicRecord(typeOf.get(batch.topic) ?? batch.topic, record);
            if (wanted === undefined || wanted.has(one.eventId)) found.push(one);
          }
          if (batch.lastOffset + 1n >= end) {
            left.delete(name);
            consumer.pause(batch);
            if (left.size === 0) resolve();
          } else {
            consumer.resume(batch, batch.lastOffset + 1n);
          }
          return Promise.resolve();
        },
      });
    });
  } finally {
    await consumer.stop();
    await offsets.close();
  }
  return found;
}

function toTopicRecord(type: string, record: LogRecord): TopicRecord {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(record.headers)) {
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) headers[name] = first.toString();
  }
  const key = record.key?.toString("utf8") ?? "";
  return {
    eventId: headers["ce_id"] ?? "",
    type,
    tenantId: key.split("/")[0] ?? "",
    key,
    value: record.value ?? Buffer.alloc(0),
    headers,
  };
}
