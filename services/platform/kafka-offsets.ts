import type { Admin } from "kafkajs";
import { Fault } from "../../schemas/faults.ts";
import { openAdminClient } from "./kafka-admin-client.ts";
import type { BrokerRoute } from "./kafka-connection.ts";
import { openSeed } from "./kafka-seed.ts";
import { askTopicIds } from "./kafka-topic-ids.ts";
import type { Wire } from "./kafka-wire.ts";
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
  /** Which of these topics exist, with Kafka's own id of each; null from a broker that gives none (before 2.8). */
  existing(topics: readonly string[]): Promise<ReadonlyMap<string, string | null>>;
  /** Ends of all partitions of one topic; TOPIC_MISSING when there is none of this name. */
  ends(topic: string): Promise<readonly PartitionEnds[]>;
  close(): Promise<void>;
}

/** Looks into the log by time, and forgets what a reader left at the broker. Every failure is a `Fault`. */
export interface LogLookupPort extends OffsetsPort {
  /** First offset of each partition whose record is of `timestampMs` (UTC milliseconds) or later; the end when none is. */
  at(topic: string, timestampMs: number): Promise<ReadonlyMap<number, bigint>>;
  /** Deletes groups without members; answers those that the broker keeps for now. One that is gone already is deleted. */
  deleteGroups(groupIds: readonly string[]): Promise<readonly string[]>;
}

/** As patient as the client's own questions. */
const metadataTimeoutMs = 8_000;

/** The port over kafkajs' admin client; the first question connects. */
export function createKafkaOffsets(options: {
  readonly endpoint: KafkaEndpoint;
  readonly log: Log;
  readonly route?: BrokerRoute;
}): LogLookupPort {
  const client = openAdminClient({ ...options, retries: 2 });
  let seed: Promise<Wire> | null = null;

  async function ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    try {
      return await client.ask(question);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (isUnknownTopic(error)) throw new Fault("TOPIC_MISSING", text, { cause: error });
      throw new Fault("BROKER_UNAVAILABLE", text, { cause: error });
    }
  }

  return {
    async existing(topics) {
      if (topics.length === 0) return new Map();
      const mine = (seed ??= openSeed({
        ...options.endpoint,
        log: options.log,
        requestTimeoutMs: metadataTimeoutMs,
      }));
      try {
        const ids = await askTopicIds(await mine, topics);
        if (ids !== null) return ids;
      } catch (error) {
        // Whatever it was, the next question takes a new connection.
        if (seed === mine) seed = null;
        void mine.then((wire) => wire.close()).catch(() => undefined);
        throw error instanceof Fault
          ? error
          : new Fault("BROKER_UNAVAILABLE", error instanceof Error ? error.message : String(error), {
              cause: error,
            });
      }
      const all = new Set(await ask((admin) => admin.listTopics()));
      return new Map(topics.filter((topic) => all.has(topic)).map((topic) => [topic, null]));
    },
    async ends(topic) {
      const found = await ask((admin) => admin.fetchTopicOffsets(topic));
      return found.map(({ partition, low, high }) => ({
        partition,
        earliest: BigInt(low),
        latest: BigInt(high),
      }));
    },
    async at(topic, timestampMs) {
      const found = await ask((admin) => admin.fetchTopicOffsetsByTimestamp(topic, timestampMs));
      return new Map(found.map(({ partition, offset }) => [partition, BigInt(offset)]));
    },
    async deleteGroups(groupIds) {
      const kept: string[] = [];
      for (const groupId of groupIds) {
        try {
          await ask((admin) => admin.deleteGroups([groupId]));
        } catch (error) {
          // kafkajs throws one error for all, with the broker's word on each inside.
          if (!isGroupGone(error)) kept.push(groupId);
        }
      }
      return kept;
    },
    async close() {
      await seed?.then((wire) => wire.close()).catch(() => undefined);
      await client.close();
    },
  };
}

/** The protocol's number of GROUP_ID_NOT_FOUND. */
const groupIdNotFound = 69;

function isGroupGone(error: unknown): boolean {
  const cause = error instanceof Fault ? error.cause : error;
  const groups = (cause as { groups?: readonly { errorCode?: unknown }[] }).groups ?? [];
  return groups.length > 0 && groups.every(({ errorCode }) => errorCode === groupIdNotFound);
}

function isUnknownTopic(error: unknown): boolean {
  const type = (error as { type?: unknown }).type;
  const cause = (error as { cause?: unknown }).cause;
  return type === "UNKNOWN_TOPIC_OR_PARTITION" || (cause instanceof Error && isUnknownTopic(cause));
}
