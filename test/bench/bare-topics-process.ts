import type { EachBatchPayload } from "kafkajs";
import { openDatabase } from "../../services/platform/postgres.ts";
import { toUuid } from "../../services/platform/ids.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import { openKafka } from "./bench-topic.ts";
import { runAsChild } from "./child-process.ts";
import { ProgressCounter } from "./consumer-progress.ts";

interface Settings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topics: readonly string[];
  readonly group: string;
}

/** Partitions at once, as the host does it. */
const partitionsAtOnce = 3;

/** The floor of any rebuild: kafkajs, Avro, and one insert a batch of what tells events apart. No inbox, no judgement. */
runAsChild<Settings>(async ({ brokers, databaseUrl, topics, group }) => {
  const counter = new ProgressCounter();
  const database = openDatabase({
    url: databaseUrl,
    applicationName: "fabric-bench-bare",
    searchPath: ["bare"],
  });
  const codec = memoryCodec();
  const takeBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
    const events = await Promise.all(
      batch.messages.map(async ({ value }) => (await codec.decode(value ?? Buffer.alloc(0))).envelope),
    );
    await database.query({
      name: "bench-bare-events",
      text: `INSERT INTO events SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])`,
      values: [
        events.map((one) => toUuid(one.event_id)),
        events.map((one) => one.type),
        events.map((one) => one.tenant_id),
        events.map((one) => one.correlation_id),
        events.map((one) => new Date(one.recorded_at)),
      ],
    });
    counter.done(events.length);
  };
  const consumer = openKafka(brokers).consumer({ groupId: group, maxWaitTimeInMs: 250 });
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  await consumer.run({
    partitionsConsumedConcurrently: partitionsAtOnce,
    eachBatch: async (payload) => {
      counter.arrived();
      await takeBatch(payload);
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
