import { randomUUID } from "node:crypto";
import { Fault } from "../../schemas/faults.ts";
import type { ConsumerPort, LogRecord, TopicPartition } from "./kafka-consumer.ts";
import type { OffsetsPort } from "./kafka-offsets.ts";

/** Longest wait for all of it: a million records are read in seconds. */
const defaultTimeoutMs = 60_000;

export interface ReadToEndOptions {
  /** Opens a consumer of a throwaway group, which never commits. */
  readonly openConsumer: (groupId: string) => ConsumerPort;
  readonly offsets: Pick<OffsetsPort, "ends">;
  /** Names on the broker, prefix included. */
  readonly topics: readonly string[];
  readonly timeoutMs?: number;
  /** In order within a partition. A rejection ends the reading. */
  onRecord(record: LogRecord, from: TopicPartition): void | Promise<void>;
}

/**
 * Reads topics from their first records to the ends that they have now. Throws TOPIC_MISSING, or BROKER_UNAVAILABLE when
 * the broker cannot be asked or takes longer than `timeoutMs` (milliseconds).
 */
export async function readToEnd(options: ReadToEndOptions): Promise<void> {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const left = new Map<string, { readonly earliest: bigint; readonly latest: bigint }>();
  for (const topic of options.topics) {
    for (const { partition, earliest, latest } of await options.offsets.ends(topic)) {
      if (latest > earliest) left.set(nameOf({ topic, partition }), { earliest, latest });
    }
  }
  if (left.size === 0) return;
  const consumer = options.openConsumer(`fabric-reader-${randomUUID()}`);
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => {
        reject(
          new Fault(
            "BROKER_UNAVAILABLE",
            `${[...left.keys()].join(", ")} were not read in ${String(timeoutMs)} ms`,
          ),
        );
      }, timeoutMs);
      consumer.start({
        topics: () => Promise.resolve(options.topics),
        assigned: (partitions) =>
          Promise.resolve(
            partitions.flatMap((one) => {
              const ends = left.get(nameOf(one));
              return ends === undefined ? [] : [{ ...one, offset: ends.earliest }];
            }),
          ),
        async batch(batch) {
          const end = left.get(nameOf(batch))?.latest;
          if (end === undefined) return;
          try {
            for (const record of batch.records) {
              if (record.offset < end) await options.onRecord(record, batch);
            }
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
            return;
          }
          if (batch.lastOffset + 1n < end) {
            consumer.resume(batch, batch.lastOffset + 1n);
            return;
          }
          left.delete(nameOf(batch));
          consumer.pause(batch);
          if (left.size === 0) resolve();
        },
      });
    });
  } finally {
    clearTimeout(timer);
    await consumer.stop();
  }
}

function nameOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${String(partition)}`;
}
