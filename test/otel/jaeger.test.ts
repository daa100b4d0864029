import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { toSpanId, toTraceId } from "../../processors/trace/ids.ts";
import { trace } from "../../processors/trace/trace.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { openHostRig } from "../harness/host-rig.ts";
import { projectDir } from "../harness/stack.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";
import type { TraceHistory } from "../harness/trace-history.ts";
import { traceHistory } from "../harness/trace-history.ts";
import type { Jaeger, JaegerSpan } from "./jaeger.ts";
import { buildJaeger, startJaeger } from "./jaeger.ts";

/** Longer than the host stalls between two topics of one correlation on a busy machine. */
const holdMs = 8_000;
/** A consume span links to so many messages of its batch. */
const maxBatchLinks = 8;
/** The client's own trace, another one per protocol: both go to one Jaeger. */
const clients = {
  http: { traceId: "0123456789abcdef0123456789abcdef", spanId: "0123456789abcdef" },
  grpc: { traceId: "fedcba9876543210fedcba9876543210", spanId: "fedcba9876543210" },
} as const;
type Protocol = keyof typeof clients;

let jaeger: Jaeger;
let rig: HostRig;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  jaeger = await startJaeger(await buildJaeger((line) => process.stderr.write(`${line}\n`)));
}, 1_800_000);
afterAll(() => jaeger.stop());
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  await rig.close();
});

/** The exporter as it ships, in a process of its own. */
async function startExporter(
  protocol: Protocol,
  port: number,
): Promise<{ kill(): Promise<void>; log(): string }> {
  const main = join(projectDir, process.env["FABRIC_TEST_DIST"] ?? "dist", "services", "app", "main.js");
  if (!existsSync(main)) throw new Error("run `make test-otel`: it compiles the exporter");
  const child = spawn(process.execPath, [main, "serve", "exporter"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      FABRIC_RUN_MARK: process.env["FABRIC_RUN_MARK"],
      FABRIC_ENVIRONMENT: "test",
      FABRIC_KAFKA_BROKERS: inject("stack").kafkaBrokers.join(","),
      FABRIC_REGISTRY_URL: inject("stack").registryUrl,
      FABRIC_DATABASE_URL_EXPORTER: rig.database.roleUrl("fabric_exporter"),
      FABRIC_OTLP_ENDPOINT: `http://127.0.0.1:${String(port)}`,
      FABRIC_OTLP_PROTOCOL: protocol,
      FABRIC_OTLP_HOLD_MS: String(holdMs),
      FABRIC_OTLP_HEADERS: "x-tenant=acme",
    },
  });
  children.add(child);
  const said: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => said.push(chunk));
  const log = (): string => Buffer.concat(said).toString();
  await eventually(log, (text) => text.includes("started"), {
    deadlineMs: 30_000,
    what: "the exporter's start",
  });
  return {
    log,
    async kill() {
      const closed = once(child, "close");
      child.kill("SIGKILL");
      await closed;
      children.delete(child);
    },
  };
}

const historiesOf = (protocol: Protocol, seeds: readonly number[]): TraceHistory[] => {
  const { traceId, spanId } = clients[protocol];
  const startMs = Date.now() - 3_600_000;
  return seeds.map((seed) =>
    traceHistory({
      seed,
      calls: 20,
      startMs,
      ...(seed % 4 === 0 ? { traceparent: `00-${traceId}-${spanId}-01` } : {}),
    }),
  );
};
/** The client's trace and span of a history; null when it has none. */
const clientOf = (history: TraceHistory) => {
  const [, traceId, spanId] = history.events[0]?.trace?.traceparent.split("-") ?? [];
  return traceId === undefined || spanId === undefined ? null : { traceId, spanId };
};
const traceIdOf = (history: TraceHistory): string =>
  clientOf(history)?.traceId ?? toTraceId(history.tenantId, history.correlationId);

/** Each span and its parent by ids, that of the root being the client's span or nothing. */
function expectedOf(history: TraceHistory): Set<string> {
  const idOf = (identity: string) => toSpanId(history.tenantId, history.correlationId, identity);
  const above = clientOf(history)?.spanId ?? "nothing";
  const edges = new Set(
    history.expected.map(
      ({ identity, parent }) => `${idOf(identity)} < ${parent === null ? above : idOf(parent)}`,
    ),
  );
  for (const event of history.events) {
    if (!/^agent[.]tool[.](authorized|denied|deferred)$/.test(event.type)) continue;
    const uuid = event.event_id.slice("evt_".length);
    const { decision_id: decisionId } = event.redacted_summary as { readonly decision_id: string };
    const send = idOf(JSON.stringify(["send", uuid]));
    edges.add(`${send} < ${idOf(JSON.stringify(["decision", decisionId]))}`);
    const receive = idOf(JSON.stringify(["receive", uuid]));
    edges.add(`${receive} < ${send}`);
    edges.add(`${idOf(JSON.stringify(["process", uuid]))} < ${receive}`);
  }
  return edges;
}
const edgesOf = (spans: readonly JaegerSpan[]): Set<string> =>
  new Set(spans.map(({ spanId, parentId }) => `${spanId} < ${parentId ?? "nothing"}`));

async function counts(): Promise<{ events: number; spans: number; waiting: number }> {
  const { rows } = await rig.sql.query<{ events: number; spans: number; waiting: number }>(
    `SELECT (SELECT coalesce(sum(events), 0)::int FROM trace.traces) AS events,
      (SELECT count(*)::int FROM exporters.spans) AS spans, (SELECT count(*)::int FROM trace.arrivals) AS waiting`,
  );
  return rows[0] ?? { events: 0, spans: 0, waiting: 0 };
}

describe.each<Protocol>(["http", "grpc"])("spans over OTLP/%s, read back from Jaeger", (protocol) => {
  it("are exactly those of the histories, though an exporter was killed and the collector was away", async () => {
    rig = await openHostRig();
    await rig.createTopics(trace.topics, 2);
    rig.start([trace]);
    const base = protocol === "http" ? 1_000 : 2_000;
    const histories = historiesOf(
      protocol,
      [1, 2, 3, 4, 5, 6, 7, 9].map((seed) => base + seed),
    );
    const [first, second] = [histories.slice(0, 4), histories.slice(4)];
    const proxy = await startTcpProxy({
      host: "127.0.0.1",
      port: protocol === "http" ? jaeger.otlpHttpPort : jaeger.otlpGrpcPort,
    });
    try {
      const killed = await startExporter(protocol, proxy.port);
      await rig.publish(first.flatMap(({ events }) => events));
      await eventually(counts, ({ spans }) => spans > 20, { deadlineMs: 60_000, what: "the first spans" });
      await killed.kill();
      await proxy.shut();

      const exporter = await startExporter(protocol, proxy.port);
      await rig.publish(second.flatMap(({ events }) => [...events, ...events.slice(0, 5)]));
      const all = histories.reduce((sum, { events }) => sum + events.length, 0);
      await eventually(counts, ({ events }) => events === all, {
        deadlineMs: 90_000,
        what: "the projection",
      });
      // A lease of the killed one ends by time.
      await rig.sql.query("UPDATE exporters.traces SET leased_until = now()");
      await eventually(exporter.log, (text) => text.includes("spans were not sent"), { deadlineMs: 60_000 });
      await proxy.open();
      await eventually(counts, ({ waiting }) => waiting === 0, {
        deadlineMs: 120_000,
        what: "an empty backlog",
      });

      const byTrace = new Map<string, Set<string>>();
      for (const history of histories) {
        const known = byTrace.get(traceIdOf(history)) ?? new Set();
        byTrace.set(traceIdOf(history), new Set([...known, ...expectedOf(history)]));
      }
      const { rows: neighbours } = await rig.sql.query<{ event_id: string; others: number }>(
        `SELECT d.event_id, (SELECT count(*)::int FROM trace.deliveries AS o
            WHERE o.batch_id = d.batch_id AND o.event_id <> d.event_id) AS others FROM trace.deliveries AS d`,
      );
      const othersOf = new Map(neighbours.map((one) => [`evt_${one.event_id}`, one.others]));
      const producers = new Set<string>();
      const links: { readonly to: readonly string[]; readonly others: number | undefined }[] = [];
      for (const [traceId, expected] of byTrace) {
        const spans = await eventually(
          () => jaeger.readTrace(traceId),
          (found) => found.length >= expected.size,
          { deadlineMs: 20_000, what: `trace ${traceId}` },
        );
        expect(edgesOf(spans)).toEqual(expected);
        const ids = new Set(spans.map(({ spanId }) => spanId));
        const roots = spans.filter(({ parentId }) => parentId === null || !ids.has(parentId));
        expect(roots.map(({ name, parentId }) => [name, parentId])).toEqual([
          ["goal", traceId === clients[protocol].traceId ? clients[protocol].spanId : null],
        ]);
        expect(spans.filter(({ tags }) => tags["fabric.synthetic"] === true)).toEqual([]);
        // Jaeger says so itself of a span that it cannot take as it is. The client's span is not here, and what goes over
        // the bus outlasts its parent: neither is a fault.
        const isFault = (one: string): boolean =>
          !one.includes(clients[protocol].spanId) && !one.startsWith("clock skew adjustment disabled");
        const faults = spans.flatMap(({ warnings }) => warnings.filter(isFault));
        expect(faults).toEqual([]);
        const consumed = spans.filter(({ tags }) => tags["span.kind"] === "consumer");
        expect(consumed.length).toBeGreaterThan(0);
        expect(consumed.every(({ tags }) => Number(tags["messaging.batch.message_count"]) >= 1)).toBe(true);
        for (const { tags, spanId } of spans)
          if (tags["span.kind"] === "producer") producers.add(`${traceId}/${spanId}`);
        for (const one of consumed)
          links.push({ to: one.links, others: othersOf.get(String(one.tags["messaging.message.id"])) });
      }
      // Each consume span links to the producing spans of its batch's other messages, in their own traces.
      expect(links.some(({ to }) => to.length > 0)).toBe(true);
      expect(links.map(({ to }) => to.length)).toEqual(
        links.map(({ others }) => Math.min(others ?? -1, maxBatchLinks)),
      );
      expect(links.flatMap(({ to }) => to.filter((one) => !producers.has(one)))).toEqual([]);
    } finally {
      await proxy.close();
    }
  }, 400_000);
});
