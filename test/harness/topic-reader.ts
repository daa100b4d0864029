import { randomUUID } from "node:crypto";
import type { Admin, Kafka } from "kafkajs";

export interface ReadRecord {
  readonly partition: number;
  readonly offset: bigint;
  readonly key: string;
  readonly value: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly timestampMs: number;
}

/** All records that a topic holds now, in order per partition. */
export const readTopic = async (kafka: Kafka, admin: Admin, topic: string): Promise<ReadRecord[]> => {
  const ends = new Map(
    (await admin.fetchTopicOffsets(topic))
      .filter(({ low, high }) => low !== high)
      .map(({ partition, high }) => [partition, BigInt(high)]),
  );
  if (ends.size === 0) return [];
  const groupId = `reader-${randomUUID()}`;
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6_000, maxWaitTimeInMs: 100 });
  const records: ReadRecord[] = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`\`${topic}\` was not read to its end in 30 s`)),
        30_000,
      );
      consumer
        .run({
          autoCommit: false,
          eachBatch: ({ batch }) => {
            for (const message of batch.messages) {
              records.push({
                partition: batch.partition,
                offset: BigInt(message.offset),
                key: message.key?.toString() ?? "",
                value: message.value ?? Buffer.alloc(0),
                headers: Object.fromEntries(
                  Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)]),
                ),
                timestampMs: Number(message.timestamp),
              });
            }
            if (BigInt(batch.lastOffset()) + 1n >= (ends.get(batch.partition) ?? 0n))
              ends.delete(batch.partition);
            if (ends.size === 0) {
              clearTimeout(timer);
              resolve();
            }
            return Promise.resolve();
          },
        })
        .catch(reject);
    });
  } finally {
    await consumer.disconnect();
    await admin.deleteGroups([groupId]).catch(() => undefined);
  }
  return records.sort((a, b) => a.partition - b.partition || Number(a.offset - b.offset));
};
