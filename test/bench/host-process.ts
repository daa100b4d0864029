import { defineProcessor } from "../../processors/kit/processor.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { startHost } from "../../services/host/host.ts";
import { benchCodec } from "./backlog.ts";
import { benchType } from "./bench-events.ts";
import { benchSchema, insertCalls, toCallRow } from "./bench-projection.ts";
import { runAsChild } from "./child-process.ts";
import { ProgressCounter } from "./consumer-progress.ts";

interface Settings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topicPrefix: string;
}

/** The product's host with one processor of the ordinary kind. */
runAsChild<Settings>(async ({ brokers, databaseUrl, topicPrefix }) => {
  const counter = new ProgressCounter();
  const database = openDatabase({
    url: databaseUrl,
    applicationName: "fabric-bench-host",
    searchPath: [benchSchema, "host"],
  });
  const log = createLog({ service: "bench-host", level: "error" });
  const host = startHost({
    processors: [
      defineProcessor({
        name: "bench-calls",
        topics: [benchType],
        project: (event) => {
          counter.arrived();
          return [toCallRow(event)];
        },
        apply: async (tx, rows) => {
          await tx.query(insertCalls(rows));
          counter.done(rows.length);
        },
      }),
    ],
    endpoint: { brokers, clientId: "fabric-bench-host" },
    database,
    codec: benchCodec(),
    sealer: {
      open: () => Promise.resolve(),
      seal: () => Promise.reject(new Error("a record of this benchmark was set aside")),
    },
    metrics: createMetrics(),
    log,
    clock: systemClock,
    environment: "bench",
    topicPrefix,
    groupPrefix: topicPrefix,
  });
  await Promise.resolve();
  return {
    answer: () => counter.read(),
    async stop() {
      await host.stop();
      await database.end();
    },
  };
});
