import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOtlpExporter } from "../../services/exporters/otlp/exporter.ts";
import type { SpanSender } from "../../services/exporters/otlp/sender.ts";
import { createSender } from "../../services/exporters/otlp/sender.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { toSpanId } from "../../processors/trace/ids.ts";
import { eventually } from "../harness/eventually.ts";
import type { OtlpCollector } from "../harness/otlp-collector.ts";
import { startOtlpCollector, toPartialSuccess } from "../harness/otlp-collector.ts";
import type { TraceHistory } from "../harness/trace-history.ts";
import { traceHistory } from "../harness/trace-history.ts";
import type { TraceRig } from "../harness/trace-rig.ts";
import { openTraceRig } from "../harness/trace-rig.ts";

let rig: TraceRig;
let collector: OtlpCollector;
const senders: SpanSender[] = [];
beforeAll(async () => {
  rig = await openTraceRig();
});
beforeEach(async () => {
  await rig.clear();
  collector = await startOtlpCollector();
});
afterEach(async () => {
  for (const one of senders.splice(0)) await one.close();
  await collector.close();
});
afterAll(() => rig.close());

const log = createLog({ service: "exporter-test", level: "silent" });
const rejected: [number, string][] = [];
function exporterOf(options: { holdMs?: number; endpoint?: string; retentionMs?: number } = {}) {
  const metrics = createMetrics();
  const sender = createSender({
    endpoint: options.endpoint ?? collector.endpoint,
    protocol: "http",
    headers: { "x-api-key": "k" },
    environment: "test",
    timeoutMs: 2_000,
    onRejected: (spans, message) => void rejected.push([spans, message]),
  });
  senders.push(sender);
  const exporter = createOtlpExporter({
    database: rig.as("fabric_exporter"),
    sender,
    metrics,
    log,
    exporterId: `test-${String(senders.length)}`,
    holdMs: options.holdMs ?? 0,
    retentionMs: options.retentionMs ?? 100 * 365 * 86_400_000,
    pollMs: 20,
    firstBackoffMs: 20,
  });
  return { ...exporter, metrics };
}
const historyOf = (seed: number): TraceHistory => traceHistory({ seed, calls: 12 });
const expectedOf = (history: TraceHistory): Set<string> => {
  const idOf = (identity: string) => toSpanId(history.tenantId, history.correlationId, identity);
  return new Set(
    history.expected.map(
      ({ identity, parent }) => `${idOf(identity)} < ${parent === null ? "null" : idOf(parent)}`,
    ),
  );
};
/** What came, without the spans of the bus. */
const receivedOf = (): string[] =>
  collector.spans
    .filter(({ name }) => !/^(send|process) agent[.]/.test(name))
    .map(({ spanId, parentId }) => `${spanId} < ${String(parentId)}`);

describe("the exporter of spans", () => {
  it("sends each span once, with its parent, and then nothing more", async () => {
    const history = historyOf(1);
    await rig.project(history.events);
    const exporter = exporterOf();
    expect(await exporter.exportOnce()).toBe(collector.spans.length);
    expect(receivedOf()).toHaveLength(history.expected.length);
    expect(new Set(receivedOf())).toEqual(expectedOf(history));
    expect(new Set(collector.spans.map((one) => one.traceId)).size).toBe(1);
    expect(collector.headers[0]).toMatchObject({ "x-api-key": "k" });
    expect(await exporter.exportOnce()).toBe(0);
    expect((await rig.sql.query("SELECT FROM trace.arrivals")).rowCount).toBe(0);
  });

  it("holds what is open until its trace is quiet, and sends what is complete at once", async () => {
    const history = historyOf(2);
    await rig.project(history.events.slice(0, -6));
    const exporter = exporterOf({ holdMs: 600_000 });
    await exporter.exportOnce();
    const early = receivedOf();
    expect(early.length).toBeGreaterThan(0);
    expect(early.length).toBeLessThan(history.expected.length);
    expect(early.every((edge) => !edge.endsWith("null"))).toBe(true);
    await rig.project(history.events);
    await exporterOf().exportOnce();
    await rig.sql.query("UPDATE exporters.traces SET look_at = now(), look_again_at = now()");
    await exporterOf().exportOnce();
    expect(new Set(receivedOf())).toEqual(expectedOf(history));
    expect(receivedOf()).toHaveLength(history.expected.length);
  });

  it("never sends a stand-in twice: the true parent that comes later is counted as late", async () => {
    const history = historyOf(3);
    const isLate = (type: string): boolean =>
      type === "agent.turn.started" || type === "agent.turn.completed";
    await rig.project(history.events.filter(({ type }) => !isLate(type)));
    const exporter = exporterOf();
    await exporter.exportOnce();
    const before = collector.spans.length;
    expect(new Set(receivedOf())).toEqual(expectedOf(history));
    await rig.project(history.events);
    await rig.sql.query("UPDATE exporters.traces SET look_again_at = now()");
    expect(await exporter.exportOnce()).toBe(0);
    expect(collector.spans).toHaveLength(before);
    expect(await exporter.metrics.render()).toMatch(/fabric_otlp_spans_late_total [1-9]/);
  });

  it("loses nothing while the collector is away, tells how much waits, and sends all of it when it is back", async () => {
    const { endpoint } = collector;
    await collector.close();
    const histories = [4, 5, 6].map(historyOf);
    for (const history of histories) await rig.project(history.events);
    const exporter = exporterOf({ endpoint });
    const stop = new AbortController();
    const running = exporter.run(stop.signal);
    try {
      await eventually(
        () => exporter.metrics.render(),
        (text) => /fabric_otlp_failures_total [1-9]/.test(text),
        { deadlineMs: 20_000 },
      );
      expect(await exporter.metrics.render()).toMatch(/fabric_otlp_backlog_traces 3/);
      collector = await startOtlpCollector(Number(new URL(endpoint).port));
      const wanted = histories.reduce((sum, one) => sum + one.expected.length, 0);
      await eventually(
        () => receivedOf().length,
        (count) => count >= wanted,
        { deadlineMs: 20_000 },
      );
      await eventually(
        () => exporter.metrics.render(),
        (text) => /fabric_otlp_backlog_traces 0/.test(text),
        { deadlineMs: 10_000 },
      );
      expect(new Set(receivedOf())).toEqual(new Set(histories.flatMap((one) => [...expectedOf(one)])));
    } finally {
      stop.abort();
      await running;
    }
  });

  it("shares the work between two exporters without sending a span twice", async () => {
    const histories = Array.from({ length: 12 }, (_, n) => historyOf(20 + n));
    for (const history of histories) await rig.project(history.events);
    const [one, two] = [exporterOf(), exporterOf()];
    await Promise.all([one.exportOnce(), two.exportOnce()]);
    await one.exportOnce();
    expect(receivedOf()).toHaveLength(histories.reduce((sum, history) => sum + history.expected.length, 0));
  });

  it("sets aside the one span that the collector refuses, and sends the others", async () => {
    const history = historyOf(7);
    await rig.project(history.events);
    collector.answer = (spans) => ({ status: spans.some(({ name }) => name === "goal") ? 400 : 200 });
    const exporter = exporterOf();
    await exporter.exportOnce();
    expect(receivedOf()).toHaveLength(history.expected.length - 1);
    expect(await exporter.metrics.render()).toMatch(/fabric_otlp_spans_refused_total 1/);
    expect(await exporter.exportOnce()).toBe(0);
  });

  it("tells of spans that the collector took and threw away, and does not send them again", async () => {
    await rig.project(historyOf(8).events);
    collector.answer = () => ({ status: 200, body: toPartialSuccess(2, "too old") });
    const exporter = exporterOf();
    await exporter.exportOnce();
    expect(rejected.at(-1)).toEqual([2, "too old"]);
    expect(await exporter.exportOnce()).toBe(0);
  });

  it("takes away what is older than the retention, and counts what could never be sent", async () => {
    await rig.project(historyOf(9).events);
    const exporter = exporterOf({ retentionMs: 1_000 });
    const stop = new AbortController();
    const running = exporter.run(stop.signal);
    try {
      await eventually(
        async () => (await rig.sql.query("SELECT FROM trace.spans")).rowCount,
        (rows) => rows === 0,
        { deadlineMs: 10_000 },
      );
    } finally {
      stop.abort();
      await running;
    }
    expect(collector.spans).toEqual([]);
    expect(await exporter.metrics.render()).toMatch(/fabric_otlp_traces_expired_total 1/);
  });
});
