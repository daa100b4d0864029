import { setTimeout as wait } from "node:timers/promises";
import type { Admin } from "kafkajs";
import kafkajs from "kafkajs";
import { Fault } from "../../schemas/faults.ts";
import { openAdminClient } from "./kafka-admin-client.ts";
import type { KafkaEndpoint } from "./kafka.ts";
import type { Log } from "./log.ts";

// Node's ESM loader does not see this name among the exports of kafkajs' CommonJS.
const { ConfigResourceTypes } = kafkajs;

/** A topic as the broker has it. `configs` are the values in force; `overrides` those that were set on the topic. */
export interface TopicState {
  readonly topic: string;
  readonly partitions: number;
  readonly replication: number;
  readonly configs: Readonly<Record<string, string>>;
  readonly overrides: Readonly<Record<string, string>>;
}

/** A topic to create. */
export interface NewTopic {
  readonly topic: string;
  readonly partitions: number;
  readonly replication: number;
  readonly configs: Readonly<Record<string, string>>;
}

/**
 * Topic administration. It has no way to delete, nor to lower a partition count. Faults: BROKER_UNAVAILABLE
 * (transient), TOPIC_MISSING, BROKER_REJECTED (with the broker's own words).
 */
export interface KafkaAdminPort {
  /** Existing topics that `accept` takes, with their settings. */
  topics(accept: (topic: string) => boolean): Promise<readonly TopicState[]>;
  /** Creates topics; one that exists already is left as it is. */
  createTopics(topics: readonly NewTopic[]): Promise<void>;
  /** Raises a topic's partitions to `count`. */
  raisePartitions(topic: string, count: number): Promise<void>;
  /** Sets some configs of a topic and keeps its other overrides. */
  alterConfigs(topic: string, configs: Readonly<Record<string, string>>): Promise<void>;
  close(): Promise<void>;
}

/** `topic = prefix + type`, so that several fabrics, or tests, can share a broker. */
export function toTopicName(prefix: string, type: string): string {
  return prefix + type;
}

const leadersDeadlineMs = 30_000;
const leadersPollMs = 100;

/** Source of a config value that was set on the topic itself. */
const topicConfigSource = 1;

/** The port over kafkajs' admin client; the first call connects, and a broken connection is opened again. */
export function createKafkaAdmin(options: {
  readonly endpoint: KafkaEndpoint;
  readonly log: Log;
}): KafkaAdminPort {
  const client = openAdminClient({ ...options, retries: 3 });

  async function ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    try {
      return await client.ask(question);
    } catch (error) {
      throw toAdminFault(error);
    }
  }

  /** kafkajs' own wait gives up when the broker has not heard yet of a topic that its controller made a moment ago. */
  async function untilLed(topics: readonly string[]): Promise<void> {
    const untilMs = performance.now() + leadersDeadlineMs;
    for (;;) {
      try {
        const found = await ask((admin) => admin.fetchTopicMetadata({ topics: [...topics] }));
        if (found.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))) return;
        if (performance.now() > untilMs)
          throw new Fault(
            "BROKER_UNAVAILABLE",
            `new topics have no leaders after ${String(leadersDeadlineMs / 1000)} s`,
          );
      } catch (error) {
        if (performance.now() > untilMs) throw error;
      }
      await wait(leadersPollMs);
    }
  }

  async function describe(
    topics: readonly string[],
  ): Promise<Map<string, Pick<TopicState, "configs" | "overrides">>> {
    const { resources } = await ask((admin) =>
      admin.describeConfigs({
        includeSynonyms: false,
        resources: topics.map((name) => ({ type: ConfigResourceTypes.TOPIC, name })),
      }),
    );
    return new Map(
      resources.map(({ resourceName, configEntries }) => {
        const values = configEntries.filter((one) => !one.isSensitive);
        const own = values.filter((one) => Number(one.configSource) === topicConfigSource);
        const toObject = (entries: typeof values): Record<string, string> =>
          Object.fromEntries(entries.map((one) => [one.configName, one.configValue]));
        return [resourceName, { configs: toObject(values), overrides: toObject(own) }] as const;
      }),
    );
  }

  return {
    async topics(accept) {
      const names = (await ask((admin) => admin.listTopics())).filter(accept).sort();
      if (names.length === 0) return [];
      const [{ topics }, described] = [
        await ask((admin) => admin.fetchTopicMetadata({ topics: names })),
        await describe(names),
      ];
      return topics
        .map(({ name, partitions }) => ({
          topic: name,
          partitions: partitions.length,
          replication: partitions[0]?.replicas.length ?? 0,
          configs: described.get(name)?.configs ?? {},
          overrides: described.get(name)?.overrides ?? {},
        }))
        .sort((one, other) => (one.topic < other.topic ? -1 : 1));
    },

    async createTopics(topics) {
      if (topics.length === 0) return;
      await ask((admin) =>
        admin.createTopics({
          waitForLeaders: false,
          topics: topics.map(({ topic, partitions, replication, configs }) => ({
            topic,
            numPartitions: partitions,
            replicationFactor: replication,
            configEntries: toEntries(configs),
          })),
        }),
      );
      await untilLed(topics.map(({ topic }) => topic));
    },

    async raisePartitions(topic, count) {
      await ask((admin) => admin.createPartitions({ topicPartitions: [{ topic, count }] }));
    },

    async alterConfigs(topic, configs) {
      const described = await describe([topic]);
      // The request replaces all overrides of the topic: those that are not named would fall back to the default.
      const merged = { ...described.get(topic)?.overrides, ...configs };
      await ask((admin) =>
        admin.alterConfigs({
          validateOnly: false,
          resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: toEntries(merged) }],
        }),
      );
    },

    async close() {
      await client.close();
    },
  };
}

function toEntries(configs: Readonly<Record<string, string>>): { name: string; value: string }[] {
  return Object.entries(configs).map(([name, value]) => ({ name, value }));
}

function toAdminFault(error: unknown): Fault {
  const inner = rootCause(error);
  const { type, topic, code, retriable } = inner as {
    type?: string;
    topic?: string;
    code?: unknown;
    retriable?: boolean;
  };
  const text = `${topic === undefined ? "" : `${topic}: `}${messageOf(inner)}`;
  if (type === "UNKNOWN_TOPIC_OR_PARTITION") return new Fault("TOPIC_MISSING", text, { cause: error });
  const refused = typeof code === "number" && retriable === false;
  return new Fault(refused ? "BROKER_REJECTED" : "BROKER_UNAVAILABLE", text, { cause: error });
}

/** kafkajs wraps what went wrong in how often it tried; several topics make an aggregate. */
function rootCause(error: unknown): unknown {
  const { errors, originalError, cause } = error as {
    errors?: readonly { readonly type?: string }[];
    originalError?: unknown;
    cause?: unknown;
  };
  const next = errors?.find((one) => one.type !== "TOPIC_ALREADY_EXISTS") ?? originalError ?? cause;
  return next === undefined || next === null || next === error ? error : rootCause(next);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
