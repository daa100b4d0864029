import { loadCostFiles, processorsWith } from "../../services/app/load-processors.ts";
import { startHost } from "../../services/host/host.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import { runAsChild } from "./child-process.ts";

interface Settings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topicPrefix: string;
  readonly groupPrefix: string;
  readonly processor: string;
  readonly pricesDir: string;
  readonly budgetsFile: string;
}

/** As many as the service has. */
const hostConnections = 8;

/** One of the processors that ship, alone in the product's host. */
runAsChild<Settings>(async (settings) => {
  const { brokers, topicPrefix, groupPrefix } = settings;
  const all = processorsWith(await loadCostFiles(settings.pricesDir, settings.budgetsFile));
  const database = openDatabase({
    url: settings.databaseUrl,
    applicationName: "fabric-bench-processor",
    maxConnections: hostConnections,
    searchPath: ["host"],
  });
  const host = startHost({
    processors: all.filter((one) => one.name === settings.processor),
    endpoint: { brokers, clientId: "fabric-bench-processor" },
    database,
    codec: memoryCodec(),
    sealer: {
      open: () => Promise.resolve(),
      seal: () => Promise.reject(new Error("a record of this benchmark was set aside")),
    },
    metrics: createMetrics(),
    log: createLog({ service: "bench-processor", level: "error" }),
    clock: systemClock,
    environment: "bench",
    topicPrefix,
    groupPrefix,
  });
  return {
    async stop() {
      await host.stop();
      await database.end();
    },
  };
});
