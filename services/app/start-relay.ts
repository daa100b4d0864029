import { randomUUID } from "node:crypto";
import { createRelay } from "../outbox/relay.ts";
import { createKafkaProducer } from "../platform/kafka-producer.ts";
import { relayPool } from "./service-pools.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import { kafkaEndpoint, serviceDatabase } from "./wiring.ts";

/** Starts one relay; `fatal` hears of an end that nobody asked for. */
export function startRelay(around: Surroundings, fatal: (error: unknown) => void): RunningService {
  const { config } = around;
  const log = around.log.child({ service: "relay" });
  const database = serviceDatabase(config, "relay", relayPool);
  const relay = createRelay({
    database,
    producerFactory: () => createKafkaProducer({ ...kafkaEndpoint(config, "fabric-relay"), log }),
    log,
    metrics: around.metrics,
    relayId: `relay-${randomUUID()}`,
    topicPrefix: config.kafka.topicPrefix,
  });
  const stop = new AbortController();
  const running = relay.run(stop.signal).catch(fatal);
  return {
    name: "relay",
    probes: {
      relay: () => {
        const { fault, leaseValid, laneGroups } = relay.health();
        const state = fault !== null || !leaseValid ? "down" : "up";
        return Promise.resolve({ state, detail: fault?.message ?? `${String(laneGroups)} lane groups` });
      },
    },
    async close() {
      stop.abort();
      await running;
      await database.end();
    },
  };
}
