import { audit } from "../../processors/audit/audit.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { runShadow } from "../../services/app/run-shadow.ts";
import type { ShadowJob } from "../../services/app/shadow-job.ts";
import { startHost } from "../../services/host/host.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { benchCodec } from "./backlog.ts";
import { benchType } from "./bench-events.ts";
import { runAsChild } from "./child-process.ts";

export type ReplaySettings =
  | {
      readonly way: "live";
      readonly brokers: readonly string[];
      readonly databaseUrl: string;
      readonly topicPrefix: string;
    }
  | {
      readonly way: "shadow";
      readonly job: Omit<ShadowJob, "ranges">;
      readonly ranges: readonly RangeText[];
    };
interface RangeText {
  readonly topic: string;
  readonly partition: number;
  readonly from: string;
  readonly to: string;
}

const processor = { ...audit, topics: [benchType] as const };

/** The audit trail, by a live host or by a shadow's. */
runAsChild<ReplaySettings>(async (settings) => {
  const log = createLog({ service: "bench-replay", level: "error" });
  await Promise.resolve();
  if (settings.way === "shadow") {
    const ranges = settings.ranges.map((one) => ({ ...one, from: BigInt(one.from), to: BigInt(one.to) }));
    const run = runShadow({ ...settings.job, ranges }, processor, log, () => ({
      schemaById: () => Promise.resolve(eventSchema(benchType)),
    }));
    return { answer: () => [...run.reasons()], stop: () => run.stop() };
  }
  const database = openDatabase({
    url: settings.databaseUrl,
    applicationName: "fabric-bench-live",
    searchPath: ["host"],
  });
  const host = startHost({
    processors: [processor],
    endpoint: { brokers: settings.brokers, clientId: "fabric-bench-live" },
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
    topicPrefix: settings.topicPrefix,
    groupPrefix: settings.topicPrefix,
  });
  return {
    answer: () => [],
    async stop() {
      await host.stop();
      await database.end();
    },
  };
});
