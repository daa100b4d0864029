import { createRelay } from "../../../services/outbox/relay.ts";
import { createKafkaProducer } from "../../../services/platform/kafka-producer.ts";
import { createLog } from "../../../services/platform/log.ts";
import { createMetrics } from "../../../services/platform/metrics.ts";
import { openDatabase } from "../../../services/platform/postgres.ts";
import { runChild, stopDead } from "./child.ts";

/** Batches that go through before a planted gap: the kill falls into the middle of the work. */
const batchesBeforeGap = 5;

runChild(({ brokers, databaseUrl, topicPrefix, name, gap }) => {
  const log = createLog({ service: name, level: "error" });
  let batches = 0;
  const relay = createRelay({
    database: openDatabase({ url: databaseUrl, applicationName: name, maxConnections: 4 }),
    producerFactory: () => createKafkaProducer({ brokers, clientId: name, log }),
    log,
    metrics: createMetrics(),
    relayId: name,
    topicPrefix,
    batchRows: 50,
    steps: (steps) => {
      const before = async (step: NonNullable<typeof gap>): Promise<void> => {
        if (step !== gap) return;
        batches += 1;
        if (batches > batchesBeforeGap) await stopDead(step);
      };
      return {
        ...steps,
        read: async (request) => {
          await before("read");
          return steps.read(request);
        },
        send: async (events) => {
          await before("send");
          return steps.send(events);
        },
        remove: async (events) => {
          await before("remove");
          await steps.remove(events);
        },
      };
    },
  });
  relay.run(new AbortController().signal).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
