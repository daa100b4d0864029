import { defineProcessor } from "../../processors/kit/processor.ts";
import { FanOutGuard, defaultFanOutLimit } from "../../services/host/fan-out-guard.ts";
import { createHostMetrics } from "../../services/host/host-metrics.ts";
import { createRedriveStore } from "../../services/host/redrive-store.ts";
import { Redriver } from "../../services/host/redriver.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import { benchType } from "./bench-events.ts";
import { benchSchema, insertCalls, toCallRow } from "./bench-projection.ts";
import { runAsChild } from "./child-process.ts";
import { letterCodec, redriveProcessor } from "./redrive-letters.ts";

/** The redriver of a host whose processor is mended, without its consumer. */
runAsChild<{ readonly databaseUrl: string }>(async ({ databaseUrl }) => {
  const database = openDatabase({
    url: databaseUrl,
    applicationName: "fabric-bench-redrive",
    searchPath: [benchSchema, "host"],
  });
  const processor = defineProcessor({
    name: redriveProcessor,
    topics: [benchType],
    project: (event) => [toCallRow(event)],
    apply: async (tx, rows) => {
      await tx.query(insertCalls(rows));
    },
  });
  const codec = letterCodec();
  const redriver = new Redriver({
    processor,
    store: createRedriveStore({
      database,
      processor,
      encoder: codec,
      sealer: { open: () => Promise.resolve(), seal: () => Promise.reject(new Error("nothing is sealed")) },
      keys: openTenantKeys(database, openMemoryKek("bench", Buffer.alloc(32, 7))),
    }),
    decoder: codec,
    guard: new FanOutGuard(defaultFanOutLimit),
    metrics: createHostMetrics(createMetrics(), redriveProcessor),
    clock: systemClock,
    log: createLog({ service: "bench-redrive", level: "error" }),
    random: Math.random,
    owner: "bench",
    environment: "bench",
    topicPrefix: "",
    pollMs: 20,
  });
  redriver.start();
  await Promise.resolve();
  return {
    answer: () => "running",
    async stop() {
      await redriver.stop();
      await database.end();
    },
  };
});
