import { Fault } from "../../schemas/faults.ts";
import { openKafka } from "./kafka-connection.ts";
import type { KafkaEndpoint } from "./kafka.ts";
import type { Log } from "./log.ts";

/** First offset that a partition still holds, and the one that its next record will get. */
export interface PartitionEnds {
  readonly partition: number;
  readonly earliest: bigint;
  readonly latest: bigint;
}

/** What the log itself says, whatever any group has committed. Every failure is a `Fault`. */
export interface OffsetsPort {
  /** Which of these topics exist. */
  existing(topics: readonly string[]): Promise<ReadonlySet<string>>;
  /** Ends of all partitions of one topic; TOPIC_MISSING when there is none of this name. */
  ends(topic: string): Promise<readonly PartitionEnds[]>;
  close(): Promise<void>;
}

/** The port over kafkajs' admin client; the first question connects. */
export function createKafkaOffsets(options: {
  readonly endpoint: KafkaEndpoint;
  readonly log: Log;
}): OffsetsPort {
  const admin = openKafka(options.endpoint, options.log).admin({
    retry: { retries: 2, initialRetryTime: 100 },
  });
  let connected: Promise<void> | null = null;

  async function ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      connected ??= admin.connect();
      await connected;
      return await question();
    } catch (error) {
      connected = null;
      const text = error instanceof Error ? error.message : String(error);
      if (isUnknownTopic(error)) throw new Fault("TOPIC_MISSING", text, { cause: error });
      throw new Fault("BROKER_UNAVAILABLE", text, { cause: error });
    }
  }

  return {
    async existing(topics) {
      const all = new Set(await ask(() => admin.listTopics()));
      return new Set(topics.filter((topic) => all.has(topic)));
    },
    async ends(topic) {
      const found = await ask(() => admin.fetchTopicOffsets(topic));
      return found.map(({ partition, low, high }) => ({
        partition,
        earliest: BigInt(low),
        latest: BigInt(high),
      }));
    },
    async close() {
      await admin.disconnect().catch(() => undefined);
    },
  };
}

function isUnknownTopic(error: unknown): boolean {
  const type = (error as { type?: unknown }).type;
  const cause = (error as { cause?: unknown }).cause;
  return type === "UNKNOWN_TOPIC_OR_PARTITION" || (cause instanceof Error && isUnknownTopic(cause));
}
