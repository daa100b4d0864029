import { randomUUID } from "node:crypto";
import { createOtlpExporter } from "../exporters/otlp/exporter.ts";
import { createSender } from "../exporters/otlp/sender.ts";
import { requireSetting } from "../platform/config.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import { serviceDatabase } from "./wiring.ts";

/** The rounds, and the scrapes. */
const exporterConnections = 3;
/** Longest answer of a collector, with the SDK's own tries in it. */
const sendTimeoutMs = 10_000;
const dayMs = 86_400_000;

/** Starts one exporter of spans; `fatal` hears of an end that nobody asked for. Throws CONFIG_INVALID without an endpoint. */
export function startExporter(around: Surroundings, fatal: (error: unknown) => void): RunningService {
  const { config, metrics } = around;
  const log = around.log.child({ service: "exporter" });
  const { protocol, headers, holdMs, retentionDays } = config.otlp;
  const endpoint = requireSetting(
    config.otlp.endpoint,
    "FABRIC_OTLP_ENDPOINT",
    "that is where spans go, such as http://127.0.0.1:4318",
  );
  const database = serviceDatabase(config, "exporter", { maxConnections: exporterConnections });
  const rejected = metrics.counter(
    "fabric_otlp_spans_rejected_total",
    "spans that the collector took and threw away",
  );
  const sender = createSender({
    endpoint,
    protocol,
    headers,
    environment: config.environment,
    timeoutMs: sendTimeoutMs,
    onRejected(spans, message) {
      rejected.add({}, spans);
      log.error({ spans, message }, "the collector took a batch and threw spans of it away");
    },
  });
  const exporter = createOtlpExporter({
    database,
    sender,
    metrics,
    log,
    exporterId: `exporter-${randomUUID()}`,
    holdMs,
    retentionMs: retentionDays * dayMs,
  });
  const stop = new AbortController();
  const running = exporter.run(stop.signal).catch(fatal);
  return {
    name: "exporter",
    probes: {
      exporter: () => {
        const { fault } = exporter.health();
        // A collector that is away is no reason to take this process out: spans wait.
        return Promise.resolve({ state: "up", detail: fault ?? `${protocol} ${new URL(endpoint).host}` });
      },
    },
    async close() {
      stop.abort();
      await running;
      await sender.close();
      await database.end();
    },
  };
}
