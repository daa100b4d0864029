import { randomUUID } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import type { Admin } from "kafkajs";
import { inject } from "vitest";
import { createRelay } from "../../services/outbox/relay.ts";
import type { Relay, RelayOptions } from "../../services/outbox/relay.ts";
import { createKafkaProducer } from "../../services/platform/kafka-producer.ts";
import type { ProducerOptions } from "../../services/platform/kafka-producer.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { OutboxRow } from "../../services/platform/outbox.ts";
import { appendOutbox } from "../../services/platform/outbox.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { createTestDatabase } from "./database.ts";
import type { TestDatabase } from "./database.ts";
import { eventually } from "./eventually.ts";
import { readTopic } from "./topic-reader.ts";
import type { ReadRecord } from "./topic-reader.ts";
import { createTopics } from "./topics.ts";

export interface RunningRelay {
  readonly relay: Relay;
  /** Ends it as a signal would; rejects with what ended it before. */
  stop(): Promise<void>;
}

/** A database with an outbox, a topic prefix, and relays between them. */
export interface RelayRig {
  readonly database: Database;
  readonly testDatabase: TestDatabase;
  readonly kafka: Kafka;
  readonly admin: Admin;
  readonly prefix: string;
  readonly log: ReturnType<typeof createLog>;
  createTopic(type: string, partitions?: number, config?: Readonly<Record<string, string>>): Promise<void>;
  /** Appends rows in one transaction and does not notify. */
  append(rows: readonly OutboxRow[]): Promise<number>;
  startRelay(options?: Partial<RelayOptions>): RunningRelay;
  producerFactory(options?: Partial<ProducerOptions>): RelayOptions["producerFactory"];
  waiting(): Promise<number>;
  /** Waits until the outbox is empty. */
  drained(deadlineMs?: number): Promise<void>;
  read(type: string): Promise<ReadRecord[]>;
  close(): Promise<void>;
}

export const toRow = (type: string, key: string, text: string, bytes?: Buffer): OutboxRow => ({
  id: randomUUID(),
  type,
  key,
  tenantId: "acme",
  payload: bytes ?? Buffer.from(text),
  headers: { ce_id: text, ce_type: type },
});

/** Values in the order of their first appearance. */
export const firstOccurrences = (values: readonly string[]): string[] => [...new Set(values)];

export const openRelayRig = async (): Promise<RelayRig> => {
  const testDatabase = await createTestDatabase();
  const database = openDatabase({ url: testDatabase.url, applicationName: "relay-test", maxConnections: 20 });
  // The relay's own role: what the grants leave out, it cannot do.
  const relayDatabase = openDatabase({
    url: testDatabase.roleUrl("fabric_relay"),
    applicationName: "relay-test",
    maxConnections: 10,
  });
  const kafka = new Kafka({
    brokers: [...inject("stack").kafkaBrokers],
    clientId: "relay-test",
    logLevel: logLevel.NOTHING,
  });
  const admin = kafka.admin();
  await admin.connect();
  const prefix = `relay-${randomUUID().slice(0, 8)}.`;
  const log = createLog({ service: "relay-test", level: "silent" });
  const topics: string[] = [];
  const relays: RunningRelay[] = [];

  const producerFactory =
    (options: Partial<ProducerOptions> = {}) =>
    () =>
      createKafkaProducer({ brokers: inject("stack").kafkaBrokers, clientId: "relay-test", log, ...options });
  const waiting = async (): Promise<number> =>
    (await database.query<{ n: number }>("SELECT count(*)::int AS n FROM outbox.events")).rows[0]?.n ?? 0;

  return {
    database,
    testDatabase,
    kafka,
    admin,
    prefix,
    log,
    producerFactory,
    waiting,
    createTopic: async (type, partitions = 3, config = {}) => {
      const topic = prefix + type;
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
      await createTopics(admin, [{ topic, numPartitions: partitions, configEntries }]);
      topics.push(topic);
    },
    append: (rows) => database.transaction((tx) => appendOutbox(tx, rows)),
    startRelay: (options = {}) => {
      const relay = createRelay({
        database: relayDatabase,
        producerFactory: producerFactory(),
        log,
        metrics: createMetrics(),
        relayId: randomUUID(),
        topicPrefix: prefix,
        pollMs: 50,
        ...options,
      });
      const stopping = new AbortController();
      const done = relay.run(stopping.signal);
      done.catch(() => undefined);
      const running = {
        relay,
        stop: () => {
          stopping.abort();
          return done;
        },
      };
      relays.push(running);
      return running;
    },
    drained: async (deadlineMs = 20_000) => {
      await eventually(waiting, (rows) => rows === 0, { deadlineMs, what: "an empty outbox" });
    },
    read: (type) => readTopic(kafka, admin, prefix + type),
    close: async () => {
      for (const running of relays) await running.stop().catch(() => undefined);
      if (topics.length > 0) await admin.deleteTopics({ topics });
      await admin.disconnect();
      await relayDatabase.end();
      await database.end();
      await testDatabase.drop();
    },
  };
};
