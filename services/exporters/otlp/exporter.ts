import { setTimeout as sleep } from "node:timers/promises";
import type { TraceTree } from "../../../processors/trace/queries.ts";
import { loadTraces } from "../../../processors/trace/queries.ts";
import { Backoff } from "../../platform/backoff.ts";
import { classify, isRecordFault } from "../../platform/classify.ts";
import type { Log } from "../../platform/log.ts";
import type { Metrics } from "../../platform/metrics.ts";
import type { Database } from "../../platform/postgres.ts";
import type { ClaimedTrace } from "./export-store.ts";
import { createExportStore, toTraceKey } from "./export-store.ts";
import type { OutgoingSpan } from "./readable-span.ts";
import { toReady } from "./ready-spans.ts";
import type { SpanSender } from "./sender.ts";

/** Traces of one round: what is claimed and not reached in time is given back. */
const tracesPerRound = 50;
/** Events of the traces that are in memory at once; one trace is bounded by its cap. */
const eventsAtOnce = 5_000n;
/** Spans of one request: some collectors take 4 MiB at most. */
const spansPerRequest = 256;
/** Longer than a round may take, which ends at half of it. */
const leaseMs = 120_000;
/** A trace that goes on is read again at most this often. */
const lookAgainMs = 2_000;
const firstBackoffMs = 500;
const longestBackoffMs = 30_000;
const sweepEveryMs = 600_000;
const sweepTraces = 500;

export interface OtlpExporterOptions {
  /** As role fabric_exporter. */
  readonly database: Database;
  readonly sender: SpanSender;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly exporterId: string;
  readonly holdMs: number;
  readonly retentionMs: number;
  readonly pollMs?: number;
  readonly firstBackoffMs?: number;
  /** From 0 to 1; default `Math.random`. */
  readonly random?: () => number;
}

/** Sends spans as they become complete. As many processes as one likes may run it. */
export interface OtlpExporter {
  /** One round; gives the spans sent. Rejects when the collector or the database is away. */
  exportOnce(): Promise<number>;
  /** Rejects when an invariant is broken: trying again would not mend it. */
  run(signal: AbortSignal): Promise<void>;
  health(): { readonly fault: string | null };
}

export function createOtlpExporter(options: OtlpExporterOptions): OtlpExporter {
  const { database, sender, log, metrics } = options;
  const store = createExportStore(database);
  const exported = metrics.counter("fabric_otlp_spans_exported_total", "spans that the collector took");
  const refused = metrics.counter(
    "fabric_otlp_spans_refused_total",
    "spans that the collector will never take",
  );
  const late = metrics.counter(
    "fabric_otlp_spans_late_total",
    "spans of which more became known after they were sent",
  );
  const expired = metrics.counter(
    "fabric_otlp_traces_expired_total",
    "traces that were older than the retention before they could be sent",
  );
  const failures = metrics.counter(
    "fabric_otlp_failures_total",
    "rounds that ended because something was away",
  );
  let backlog = { traces: 0, ageMs: 0 };
  metrics.gauge("fabric_otlp_backlog_traces", "traces that could be sent and are not", [], async (set) => {
    backlog = await store.backlog(options.holdMs).catch(() => backlog);
    set(backlog.traces);
  });
  metrics.gauge("fabric_otlp_backlog_age_seconds", "how long the oldest of them waits", [], async (set) => {
    backlog = await store.backlog(options.holdMs).catch(() => backlog);
    set(backlog.ageMs / 1_000);
  });
  let fault: string | null = null;

  /** Sends a batch; one that is refused is halved until what is wrong stands alone. */
  async function sendAll(spans: readonly OutgoingSpan[]): Promise<number> {
    if (spans.length === 0) return 0;
    const outcome = await sender.send(spans);
    if (outcome.kind === "sent") {
      await store.markSent(spans, "sent");
      exported.add({}, spans.length);
      return spans.length;
    }
    const { fault: failed } = outcome;
    if (!isRecordFault(failed)) throw failed;
    if (spans.length > 1) {
      const half = Math.ceil(spans.length / 2);
      return (await sendAll(spans.slice(0, half))) + (await sendAll(spans.slice(half)));
    }
    await store.markSent(spans, "refused");
    refused.add({}, 1);
    log.error(
      { err: failed, spanId: spans[0]?.span.spanId, correlationId: spans[0]?.correlationId },
      "the collector refuses a span; it stays in the tables and is not sent again",
    );
    return 0;
  }

  async function exportGroup(group: readonly ClaimedTrace[]): Promise<number> {
    // One snapshot: a tree is never read half before and half after a batch of events.
    const read = await database.transaction(async (tx) => {
      await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
      return loadTraces(tx, group);
    });
    const trees = new Map<string, TraceTree>(read.map((tree) => [toTraceKey(tree), tree]));
    const sent = await store.loadSent(group);
    const plans = group.map((trace) => {
      const tree = trees.get(toTraceKey(trace));
      const isOld = trace.lastAtMs < trace.nowMs - options.retentionMs;
      if (tree === undefined || isOld) {
        if (isOld && tree !== undefined) expired.add();
        return { trace, ready: { outgoing: [], late: [], lookAtMs: null } };
      }
      const look = { ...trace, holdMs: options.holdMs };
      return { trace, ready: toReady(tree, sent.get(toTraceKey(trace)) ?? new Map(), look) };
    });
    const outgoing = plans.flatMap(({ ready }) => ready.outgoing);
    let count = 0;
    for (let from = 0; from < outgoing.length; from += spansPerRequest) {
      count += await sendAll(outgoing.slice(from, from + spansPerRequest));
    }
    for (const { trace, ready } of plans) {
      if (ready.late.length > 0) {
        late.add({}, ready.late.length);
        await store.markLate(trace, ready.late);
      }
      await store.finish(trace, { lookAtMs: ready.lookAtMs, lookAgainAtMs: trace.nowMs + lookAgainMs });
    }
    return count;
  }

  async function exportOnce(): Promise<number> {
    const claimed = await store.claim({ by: options.exporterId, limit: tracesPerRound, leaseMs });
    const open = new Set(claimed);
    const untilMs = performance.now() + leaseMs / 2;
    let count = 0;
    try {
      for (const group of toPortions(claimed)) {
        if (performance.now() > untilMs) break;
        count += await exportGroup(group);
        for (const one of group) open.delete(one);
      }
      return count;
    } finally {
      // Others may take them at once; a database that is away ends the lease by time.
      for (const one of open) await store.release(one).catch(() => undefined);
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const pollMs = options.pollMs ?? 1_000;
    // Between half and all of each wait, so that several exporters do not come back as one.
    const backoff = new Backoff({
      firstMs: options.firstBackoffMs ?? firstBackoffMs,
      longestMs: longestBackoffMs,
      random: options.random ?? Math.random,
    });
    let sweepAtMs = 0;
    while (!signal.aborted) {
      try {
        const count = await exportOnce();
        fault = null;
        backoff.reset();
        if (performance.now() >= sweepAtMs) {
          const removed = await store.removeOld(options.retentionMs, sweepTraces);
          if (removed < sweepTraces) sweepAtMs = performance.now() + sweepEveryMs;
        }
        if (count === 0) await pause(pollMs, signal);
      } catch (error) {
        const failed = classify(error, "export");
        if (failed.kind === "fatal") throw failed;
        failures.add();
        fault = failed.message;
        const backoffMs = backoff.nextMs();
        log.warn({ err: failed, code: failed.code, backoffMs }, "spans were not sent; they wait in Postgres");
        await pause(backoffMs, signal);
      }
    }
  }

  return { exportOnce, run, health: () => ({ fault }) };
}

/** Traces in portions that fit into memory, in order. */
function toPortions(traces: readonly ClaimedTrace[]): readonly (readonly ClaimedTrace[])[] {
  const portions: ClaimedTrace[][] = [];
  let events = eventsAtOnce;
  for (const trace of traces) {
    if (events + trace.events > eventsAtOnce) {
      portions.push([]);
      events = 0n;
    }
    portions.at(-1)?.push(trace);
    events += trace.events;
  }
  return portions;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
