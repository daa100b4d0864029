import type { Processor } from "../../processors/kit/processor.ts";
import { startHost } from "../host/host.ts";
import type { LetterSealer } from "../host/letter-sealer.ts";
import { EventCodec } from "../platform/avro.ts";
import { systemClock } from "../platform/clock.ts";
import { createKafkaConsumer } from "../platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import type { Log } from "../platform/log.ts";
import { createMetrics } from "../platform/metrics.ts";
import { openDatabase } from "../platform/postgres.ts";
import type { SchemaRegistryPort } from "../platform/registry.ts";
import { openRegistry } from "../platform/registry.ts";
import { BoundedLog } from "../replay/bounded-log.ts";
import type { RunningRun } from "../replay/open-runs.ts";
import type { ShadowJob } from "./shadow-job.ts";
import { shadowSessionTimeoutMs } from "./shadow-job.ts";

const connections = 6;
const watchMs = 2_000;

/** A shadow has no way to the vault, and needs none: the bytes of what it sets aside are in the log that it reads. */
const logSealer: LetterSealer = {
  open: () => Promise.resolve(),
  seal: (_tx, payloads) => Promise.resolve(payloads.map(() => ({ ref: "log:", digest: "log:" }))),
};

/**
 * The host over a part of the log and into schemas of its own. It publishes nothing, holds nothing back, and wakes nobody;
 * its database login could do none of it.
 */
export function runShadow(
  job: ShadowJob,
  processor: Processor,
  log: Log,
  source: (registry: SchemaRegistryPort) => Pick<SchemaRegistryPort, "schemaById"> = (registry) => registry,
): RunningRun {
  const database = openDatabase({
    url: job.databaseUrl,
    applicationName: `fabric-replay-${processor.name}`,
    searchPath: [job.names.projection, job.names.host],
    maxConnections: connections,
  });
  const { brokers, tls, sasl } = job.kafka;
  const endpoint = { brokers, clientId: "fabric-replay", tls, ...(sasl === null ? {} : { sasl }) };
  const { url, username, password } = job.registry;
  const registry = openRegistry({
    url,
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
  });
  const bounds = new BoundedLog(job.ranges);
  const offsets = createKafkaOffsets({ endpoint, log });
  const host = startHost({
    processors: [processor],
    endpoint,
    database,
    schemaOf: (owner) => (owner === "host" ? job.names.host : job.names.projection),
    publishes: false,
    fanOutLimit: { maxEmissions: Number.MAX_SAFE_INTEGER, windowMs: 60_000 },
    codec: new EventCodec({ source: source(registry) }),
    sealer: logSealer,
    metrics: createMetrics(),
    log,
    clock: systemClock,
    environment: job.environment,
    topicPrefix: job.topicPrefix,
    openConsumer: () =>
      bounds.consumer(
        createKafkaConsumer({
          endpoint,
          groupId: job.groupId,
          log,
          sessionTimeoutMs: shadowSessionTimeoutMs,
        }),
      ),
    offsets: bounds.offsets(offsets),
    timings: { watchMs },
  });
  return {
    extend: (ranges) => {
      bounds.extend(ranges);
    },
    reasons: () => host.health().get(processor.name)?.reasons ?? [],
    failed: new Promise<never>(() => undefined),
    async stop() {
      await host.stop();
      await offsets.close();
      registry.close();
      await database.end();
    },
  };
}
