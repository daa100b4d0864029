import type { EachBatchPayload } from "kafkajs";
import { eventSchema } from "../../schemas/event-schemas.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { toType } from "../../services/platform/avro-types.ts";
import { confluentHeaderBytes } from "../../services/platform/confluent-wire.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { benchType } from "./bench-events.ts";
import { benchSchema, insertCall, insertCalls, toCallRow } from "./bench-projection.ts";
import { openKafka } from "./bench-topic.ts";
import { runAsChild } from "./child-process.ts";
import { ProgressCounter } from "./consumer-progress.ts";

interface Settings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topic: string;
  /** `batch`: one insert a batch and no inbox. `event`: what a first version does, a transaction for each event. */
  readonly way: "batch" | "event";
}

/** Partitions at once, as the host does it. */
const partitionsAtOnce = 3;

/** The floor and the naive form of the host: kafkajs and Postgres with nothing between. */
runAsChild<Settings>(async ({ brokers, databaseUrl, topic, way }) => {
  const counter = new ProgressCounter();
  const database = openDatabase({
    url: databaseUrl,
    applicationName: "fabric-bench-bare",
    searchPath: [benchSchema],
  });
  const type = toType(eventSchema(benchType));
  const read = (value: Buffer | null): Envelope<typeof benchType> =>
    type.fromBuffer((value ?? Buffer.alloc(0)).subarray(confluentHeaderBytes)) as Envelope<typeof benchType>;

  const takeBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
    const rows = batch.messages.map(({ value }) => toCallRow(read(value)));
    await database.query(insertCalls(rows));
    counter.done(rows.length);
  };
  const takeEvents = async ({ batch, resolveOffset, heartbeat }: EachBatchPayload): Promise<void> => {
    for (const { value, offset } of batch.messages) {
      const row = toCallRow(read(value));
      await database.transaction(async (tx) => {
        const claimed = await tx.query({
          name: "bench-claim",
          text: "INSERT INTO claims VALUES ($1) ON CONFLICT DO NOTHING RETURNING event_id",
          values: [row[0]],
        });
        if (claimed.rowCount === 1) await tx.query(insertCall(row));
      });
      resolveOffset(offset);
      counter.done(1);
      await heartbeat();
    }
  };

  const consumer = openKafka(brokers).consumer({ groupId: `${topic}.${way}`, maxWaitTimeInMs: 250 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    partitionsConsumedConcurrently: partitionsAtOnce,
    eachBatch: async (payload) => {
      counter.arrived();
      await (way === "batch" ? takeBatch(payload) : takeEvents(payload));
    },
  });
  return {
    answer: () => counter.read(),
    async stop() {
      await consumer.disconnect();
      await database.end();
    },
  };
});
