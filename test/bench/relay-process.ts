import { createLog } from "../../services/platform/log.ts";
import { createKafkaProducer } from "../../services/platform/kafka-producer.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { createRelay } from "../../services/outbox/relay.ts";
import { runAsChild } from "./child-process.ts";

interface Settings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topicPrefix: string;
}

/** What `fabric serve relay` gives it: reading ahead, deleting behind, renewing leases. */
const relayConnections = 4;

/** The product's relay with its own defaults, alone in a process. */
runAsChild<Settings>(async ({ brokers, databaseUrl, topicPrefix }) => {
  const log = createLog({ service: "bench-relay", level: "error" });
  const database = openDatabase({
    url: databaseUrl,
    applicationName: "fabric-bench-relay",
    maxConnections: relayConnections,
  });
  const relay = createRelay({
    database,
    producerFactory: () => createKafkaProducer({ brokers, clientId: "fabric-bench-relay", log }),
    log,
    metrics: createMetrics(),
    relayId: `bench-${String(process.pid)}`,
    topicPrefix,
  });
  const ending = new AbortController();
  const running = relay.run(ending.signal).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
  await Promise.resolve();
  return {
    async stop() {
      ending.abort();
      await running;
      await database.end();
    },
  };
});
