import { CompressionTypes } from "kafkajs";
import pg from "pg";
import type { KafkaRecord } from "../../services/platform/kafka.ts";
import { createKafkaProducer } from "../../services/platform/kafka-producer.ts";
import { createLog } from "../../services/platform/log.ts";
import { openKafka } from "./bench-topic.ts";
import { runAsChild } from "./child-process.ts";

interface Settings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topic: string;
  readonly batchRows: number;
  /** `platform` is the product's own producer, without the outbox around it. */
  readonly client: "kafkajs" | "platform";
}

/** Sends one batch and waits for its acknowledgement. */
interface Sender {
  send(records: readonly KafkaRecord[]): Promise<void>;
  close(): Promise<void>;
}

/** The limits of the relay: a producer alone, rows in memory, the relay's own batches and headers. */
runAsChild<Settings>(async ({ brokers, databaseUrl, topic, batchRows, client }) => {
  const database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  const { rows } = await database.query<{ key: string; payload: Buffer; headers: Record<string, string> }>(
    "SELECT key, payload, headers FROM bench.backlog ORDER BY n",
  );
  await database.end();
  const timestampMs = Date.now();
  const records = rows.map(({ key, payload, headers }) => ({
    topic,
    key,
    value: payload,
    headers,
    timestampMs,
  }));
  const sender = client === "kafkajs" ? await openKafkajs(brokers, topic) : await openPlatform(brokers);
  return {
    answer: async () => {
      for (let at = 0; at < records.length; at += batchRows)
        await sender.send(records.slice(at, at + batchRows));
      return "sent";
    },
    stop: () => sender.close(),
  };
});

async function openKafkajs(brokers: readonly string[], topic: string): Promise<Sender> {
  const producer = openKafka(brokers).producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  return {
    async send(records) {
      await producer.send({
        topic,
        acks: -1,
        compression: CompressionTypes.None,
        messages: records.map(({ key, value, headers }) => ({ key, value, headers })),
      });
    },
    close: () => producer.disconnect(),
  };
}

async function openPlatform(brokers: readonly string[]): Promise<Sender> {
  const log = createLog({ service: "bench-producer", level: "error" });
  const producer = await createKafkaProducer({ brokers, clientId: "fabric-bench-producer", log });
  return {
    async send(records) {
      const { failures } = await producer.send(records);
      if (failures[0] !== undefined) throw failures[0].fault;
    },
    close: () => producer.close(),
  };
}
