import type { Message } from "kafkajs";
import { CompressionTypes } from "kafkajs";
import pg from "pg";
import { openKafka } from "./bench-topic.ts";
import { runAsChild } from "./child-process.ts";

interface Settings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topic: string;
  readonly batchRows: number;
}

/** The limit of the relay: kafkajs alone, rows in memory, the relay's own batches and headers. */
runAsChild<Settings>(async ({ brokers, databaseUrl, topic, batchRows }) => {
  const database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  const { rows } = await database.query<{ key: string; payload: Buffer; headers: Record<string, string> }>(
    "SELECT key, payload, headers FROM bench.backlog ORDER BY n",
  );
  await database.end();
  const batches: Message[][] = [];
  for (let at = 0; at < rows.length; at += batchRows) {
    batches.push(
      rows.slice(at, at + batchRows).map(({ key, payload, headers }) => ({ key, value: payload, headers })),
    );
  }
  const producer = openKafka(brokers).producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  return {
    answer: async () => {
      for (const messages of batches)
        await producer.send({ topic, acks: -1, compression: CompressionTypes.None, messages });
      return "sent";
    },
    stop: () => producer.disconnect(),
  };
});
