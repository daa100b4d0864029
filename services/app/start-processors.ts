import { pruneBuckets } from "../../processors/breaker/queries.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import { createVaultLetterSealer } from "../host/letter-sealer.ts";
import { startHost } from "../host/host.ts";
import { checkProcessorSchemas } from "../host/processor-schemas.ts";
import { requireSetting } from "../platform/config.ts";
import { systemClock } from "../platform/clock.ts";
import { reportReader } from "../platform/contract-tables.ts";
import { openTenantKeys } from "../platform/vault-seal.ts";
import { loadKekFile } from "../vault/kek-file.ts";
import { hostPool, hostSessionTimeoutMs } from "./service-pools.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import { codecWhenRegistered, kafkaEndpoint, registryOf, serviceDatabase } from "./wiring.ts";

/** Old counts of the breaker are taken away this often. */
const pruneEveryMs = 10 * 60_000;

/** Runs processors in one host, each in its own consumer group. */
export async function startProcessors(
  around: Surroundings,
  processors: readonly Processor[],
  signal: AbortSignal,
): Promise<RunningService> {
  const { config } = around;
  const log = around.log.child({ service: "host" });
  const kek = await loadKekFile(
    requireSetting(config.kekFile, "FABRIC_KEK_FILE", "letters are sealed under the key-encryption key"),
  );
  const database = serviceDatabase(config, "host", hostPool);
  const registry = registryOf(config);
  const codec = await codecWhenRegistered(database, registry, log, signal);
  await checkProcessorSchemas(
    database,
    processors.map((processor) => processor.name),
  );
  for (const processor of processors) {
    await reportReader(database, {
      consumer: processor.name,
      consumerVersion: processor.version,
      types: processor.topics,
    });
  }
  const keys = openTenantKeys(database, kek);
  const host = startHost({
    processors,
    endpoint: kafkaEndpoint(config, "fabric-host"),
    database,
    codec,
    sealer: createVaultLetterSealer(keys),
    letterKeys: keys,
    metrics: around.metrics,
    log,
    clock: systemClock,
    environment: config.environment,
    topicPrefix: config.kafka.topicPrefix,
    groupPrefix: config.kafka.topicPrefix,
    sessionTimeoutMs: hostSessionTimeoutMs,
  });
  const pruning = setInterval(() => {
    if (!processors.some(({ name }) => name === "breaker")) return;
    pruneBuckets(database).catch((error: unknown) =>
      log.warn({ err: error }, "old counts of the breaker were not taken away"),
    );
  }, pruneEveryMs);
  pruning.unref();
  return {
    name: `processor ${processors.map((processor) => processor.name).join(", ")}`,
    probes: Object.fromEntries(
      processors.map(({ name }) => [
        `processor ${name}`,
        () => {
          const health = host.health().get(name);
          const ready = health?.ready === true;
          return Promise.resolve({
            state: ready ? ("up" as const) : ("down" as const),
            detail: health?.reasons.join("; ") ?? "",
          });
        },
      ]),
    ),
    async close() {
      clearInterval(pruning);
      await host.stop();
      registry.close();
      await database.end();
    },
  };
}
