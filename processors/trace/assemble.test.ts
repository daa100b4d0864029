import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HistoryOptions, TraceHistory } from "../../test/harness/trace-history.ts";
import { traceHistory } from "../../test/harness/trace-history.ts";
import { eventOf } from "../kit/given.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Draft, Envelope } from "../../schemas/envelope.ts";
import type { Outcome } from "../../schemas/generated/types.ts";
import { draft } from "../../schemas/envelope.ts";
import { assembleTrace } from "./assemble.ts";
import { own, semantic } from "./conventions.ts";
import { toSpanId, toTraceId } from "./ids.ts";
import { mergeAttributes, mergeClients, mergeSpans } from "./merge.ts";
import type { TracedEvent } from "./traced-events.ts";
import { toTraceChange } from "./parts.ts";
import type { TraceTree } from "./tree.ts";
import type { SpanState, TraceChange } from "./words.ts";

const source = { topic: "t", partition: 0, offset: 7n, timestampMs: 1_767_225_600_500 };

function storedOf(changes: readonly TraceChange[]) {
  const [first] = changes;
  if (first === undefined) throw new Error("no event");
  const spans = new Map<string, SpanState>();
  for (const part of changes.flatMap((one) => one.spans)) {
    const known = spans.get(part.spanId);
    spans.set(part.spanId, known === undefined ? part : mergeSpans(known, part));
  }
  return {
    tenantId: first.tenantId,
    correlationId: first.correlationId,
    events: BigInt(changes.length),
    firstAt: Math.min(...changes.map((one) => one.at)),
    lastAt: Math.max(...changes.map((one) => one.at)),
    clientTraceparent: changes.map((one) => one.client).reduce(mergeClients, null)?.traceparent ?? null,
    attributes: changes.map((one) => one.attributes).reduce(mergeAttributes, {}),
    isTruncated: false,
    spans: [...spans.values()],
    causes: changes.flatMap(({ cause }) => (cause === null ? [] : [cause])),
    deliveries: changes.flatMap(({ delivery, at }) =>
      delivery === null
        ? []
        : [{ ...delivery, projectedAt: at + 900, batchMessages: 3, batchLinks: [other] }],
    ),
  };
}
/** Producing span of another message of the batch, in its own trace. */
const other = "00-0000000000000000000000000000000a-000000000000000b-01";
const treeOf = (events: readonly Envelope[]): TraceTree =>
  assembleTrace(storedOf((events as TracedEvent[]).map((event) => toTraceChange(event, source))));
const bus = new Set(["send", "receive", "process"]);
/** Each span and its parent by what their ids are made from, without those of the bus. */
function edgesOf({ spans }: TraceTree, { tenantId, correlationId, expected }: TraceHistory): string[] {
  const names = new Map(
    expected.map(({ identity }) => [toSpanId(tenantId, correlationId, identity), identity]),
  );
  const nameOf = (id: string | null): string => (id === null ? "nothing" : (names.get(id) ?? id));
  return spans
    .filter(({ topic }) => !bus.has(topic))
    .map(({ spanId, parentId }) => `${nameOf(spanId)} < ${nameOf(parentId)}`)
    .sort();
}
const historyOf = (options: Partial<HistoryOptions> = {}) => traceHistory({ seed: 1, calls: 12, ...options });

function expectTree({ spans }: TraceTree): void {
  const ids = new Set(spans.map((one) => one.spanId));
  expect(ids.size).toBe(spans.length);
  expect(spans.filter((one) => one.parentId === null)).toHaveLength(1);
  const parents = new Map(spans.map((one) => [one.spanId, one.parentId]));
  for (const span of spans) {
    expect(span.parentId === null || ids.has(span.parentId)).toBe(true);
    expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
    let at: string | null | undefined = span.spanId;
    for (let steps = 0; at !== null && at !== undefined; steps += 1) {
      expect(steps).toBeLessThanOrEqual(spans.length);
      at = parents.get(at);
    }
  }
}

describe("a tree", () => {
  it("shows two reports of one model call as one span, and calls without an id each for itself", () => {
    const report = (modelCallId: string | null, at: number): Envelope =>
      eventOf(
        draft(
          "agent.model.completed",
          {
            model: "m",
            outcome: "succeeded",
            input_tokens: 5n,
            cached_input_tokens: null,
            cache_write_tokens: null,
            output_tokens: 1n,
            reasoning_tokens: null,
            duration_ms: 10n,
            cost_micros: null,
            error_kind: null,
            model_call_id: modelCallId,
          },
          { execution: { session_id: "s1" } },
        ),
        {
          recordedAtMs: at,
          correlationId: "cor_1",
          eventId: `evt_01900000-0000-7000-8000-${String(at).padStart(12, "0")}`,
        },
      );
    const { spans } = treeOf([
      report("api:1", 100),
      report("api:1", 120),
      report(null, 200),
      report(null, 210),
    ]);
    expect(spans.filter(({ topic }) => topic === "model")).toHaveLength(3);
  });

  it("has exactly the spans and parents that the history was written for", { timeout: 60_000 }, () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const history = historyOf({ seed });
      const tree = treeOf(history.events);
      expectTree(tree);
      expect(edgesOf(tree, history)).toEqual(
        history.expected.map(({ identity, parent }) => `${identity} < ${parent ?? "nothing"}`).sort(),
      );
      expect(tree.spans.some((one) => one.isSynthetic)).toBe(false);
    }
  });

  it(
    "makes one tree of any rows: whatever events never came, one root and no orphan",
    { timeout: 60_000 },
    () => {
      fc.assert(
        fc.property(
          fc.nat(5_000),
          fc.array(fc.boolean(), { minLength: 200, maxLength: 200 }),
          (seed, keep) => {
            const events = historyOf({ seed }).events.filter((_, index) => keep[index % keep.length]);
            if (events.length > 0) expectTree(treeOf(events));
          },
        ),
        { numRuns: 60 },
      );
    },
  );

  it("stands in for a parent that never came, and says so", () => {
    const history = historyOf();
    const completed = history.events.filter((one) => one.type === "agent.tool.completed").slice(0, 1);
    const tree = treeOf(completed);
    expectTree(tree);
    expect(
      tree.spans.filter((one) => one.isSynthetic).map((one) => [one.topic, one.attributes[own.synthetic]]),
    ).toEqual(
      expect.arrayContaining([
        ["session", true],
        ["turn", true],
      ]),
    );
    expect(tree.spans.find((one) => one.topic === "session")?.isComplete).toBe(false);
  });

  it("cuts a cycle of agents that name each other", () => {
    const agent = (id: string, by: string, n: number) =>
      eventOf(
        draft(
          "agent.subagent.started",
          { subagent_id: id, subagent_kind: null },
          { agent_id: by, execution: { session_id: "s" } },
        ),
        { eventId: `evt_01900000-0000-7000-8000-00000000000${String(n)}` },
      );
    expectTree(treeOf([agent("a", "b", 1), agent("b", "a", 2)]));
  });

  it("moves a child that starts before its parent, and says by how much", () => {
    const history = historyOf();
    const skewed = history.events.map((event) =>
      event.type === "agent.model.completed"
        ? { ...event, recorded_at: event.recorded_at - 3_600_000 }
        : event,
    );
    const tree = treeOf(skewed);
    const model = tree.spans.find((one) => one.topic === "model");
    const parent = tree.spans.find((one) => one.spanId === model?.parentId);
    expect(model?.startMs).toBe(parent?.startMs);
    expect(model?.attributes[own.clampedMs]).toBeGreaterThan(3_500_000);
  });

  it("calls a refused call no error, a failed tool and an unresolved effect one", () => {
    const trees = Array.from({ length: 40 }, (_, seed) => treeOf(historyOf({ seed: seed + 1 }).events));
    const all = trees.flatMap((tree) => tree.spans);
    const decisions = all.filter((one) => one.topic === "decision");
    expect(decisions.some((one) => one.attributes[own.decision] === "deny")).toBe(true);
    expect(decisions.every((one) => one.status === "unset")).toBe(true);
    expect(
      all.filter((one) => one.topic === "call" && one.status === "error").map((one) => one.errorType),
    ).toContain("tool_failed");
    const effects = all.filter((one) => one.topic === "effect");
    expect(effects.map((one) => one.errorType)).toContain("unresolved_timeout");
    const settled = all.filter((one) => one.topic === "reconciliation").map((one) => one.parentId);
    expect(effects.filter((one) => settled.includes(one.spanId)).every((one) => one.status === "ok")).toBe(
      true,
    );
  });

  it("measures a decision from its intent, and an approval to its answer", () => {
    const history = historyOf({ seed: 5, calls: 40 });
    const tree = treeOf(history.events);
    const decisions = tree.spans.filter((one) => one.topic === "decision");
    expect(decisions.every((one) => one.endMs > one.startMs)).toBe(true);
    const waits = tree.spans.filter((one) => one.topic === "approval");
    expect(waits.length).toBeGreaterThan(0);
    expect(waits.every((one) => one.endMs > one.startMs && one.isComplete)).toBe(true);
  });

  it("shows the run apart from what the call waited for, by the runtime's stopwatch or else from the decision", () => {
    const at = (ms: number) => 1_767_225_600_000 + ms;
    let n = 0;
    const say = <T extends EventType>(one: Draft<T>, ms: number): Envelope => {
      n += 1;
      const eventId = `evt_01900000-0000-7000-8000-${String(n).padStart(12, "0")}`;
      const execution = { session_id: "s", tool_call_id: "c" };
      return eventOf({ ...one, execution }, { eventId, recordedAtMs: at(ms) }) as Envelope;
    };
    const subject = { tool: "shell.run", action: "run", resource_ref: null, data_class: "internal" } as const;
    const requested = say(
      draft(
        "agent.tool.requested",
        {
          effect_class: "write",
          input_bytes: 2,
          input_preview: "{}",
          paths: [],
          working_directory: null,
          tool_alias: null,
        },
        { subject },
      ),
      0,
    );
    const authorized = say(
      draft("agent.tool.authorized", { decision_id: "dec_1", effect_class: "write", modified: false }),
      60_000,
    );
    const completed = (outcome: Outcome, durationMs: bigint | null) =>
      say(
        draft(
          "agent.tool.completed",
          {
            outcome,
            duration_ms: durationMs,
            output_bytes: null,
            output_preview: null,
            error_preview: null,
            tool_alias: null,
          },
          { subject },
        ),
        63_000,
      );
    const runOf = (result: Envelope) => {
      const { spans } = treeOf([requested, authorized, result]);
      const run = spans.find(({ topic }) => topic === "run");
      const call = spans.find(({ topic }) => topic === "call");
      expect(run?.parentId ?? call?.spanId).toBe(call?.spanId);
      expect([call?.startMs, call?.endMs]).toEqual([at(0), at(63_000)]);
      return run === undefined ? null : [run.name, run.startMs, run.endMs, run.status];
    };
    expect(runOf(completed("succeeded", 2_500n))).toEqual(["run shell.run", at(60_500), at(63_000), "ok"]);
    expect(runOf(completed("failed", null))).toEqual(["run shell.run", at(60_000), at(63_000), "error"]);
    expect(runOf(completed("blocked", 5n))).toBeNull();
  });

  it("joins the client's trace: its trace id, its span above the root, and a link", () => {
    const client = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    const tree = treeOf(historyOf({ traceparent: client }).events);
    expect(tree).toMatchObject({
      traceId: "0123456789abcdef0123456789abcdef",
      clientSpanId: "0123456789abcdef",
    });
    expect(tree.spans[0]?.links).toEqual([client]);
    expect(treeOf(historyOf().events).traceId).toBe(toTraceId("acme", "cor_1"));
    expect(treeOf(historyOf({ traceparent: "nonsense" }).events).clientSpanId).toBeNull();
  });

  it("gives each message of a batch its own spans in its own trace, with the batch's size", () => {
    const tree = treeOf(historyOf().events);
    const sent = tree.spans.filter((one) => one.kind === "producer");
    const processed = tree.spans.filter((one) => one.kind === "consumer");
    expect(sent.length).toBe(tree.spans.filter((one) => one.topic === "decision").length);
    expect(processed.map((one) => one.attributes[semantic.ATTR_MESSAGING_BATCH_MESSAGE_COUNT])).toEqual(
      sent.map(() => 3),
    );
    expect(processed.every((one) => sent.some(({ spanId }) => spanId === one.parentId))).toBe(true);
    expect(processed.map((one) => one.links)).toEqual(sent.map(() => [other]));
  });

  it("tells the wait in the outbox, at the broker and in the consumer apart, where the host says when it took the record up", () => {
    const event = historyOf().events.find((one) => one.type === "agent.tool.authorized") as TracedEvent;
    const at = event.recorded_at;
    const told = (receivedMs?: number) => {
      const stored = storedOf([toTraceChange(event, { ...source, timestampMs: at + 20, receivedMs })]);
      const { spans } = assembleTrace(stored);
      const nameOf = (id: string | null) => spans.find(({ spanId }) => spanId === id)?.topic;
      return spans
        .filter(({ topic }) => bus.has(topic))
        .map((one) => [one.topic, nameOf(one.parentId), one.kind, one.startMs - at, one.endMs - at]);
    };
    expect(told(at + 150)).toEqual([
      ["send", "decision", "producer", 0, 20],
      ["receive", "send", "client", 20, 150],
      ["process", "receive", "consumer", 150, 900],
    ]);
    // Another clock than the relay's.
    expect(told(at + 5).slice(1)).toEqual([
      ["receive", "send", "client", 20, 20],
      ["process", "receive", "consumer", 20, 900],
    ]);
    expect(told()).toEqual([
      ["send", "decision", "producer", 0, 20],
      ["process", "send", "consumer", 20, 900],
    ]);
  });

  it("waits for an approval that is still open", () => {
    const asked = historyOf({ seed: 5, calls: 40 }).events.filter(
      (one) => one.type === "agent.approval.requested",
    );
    const tree = treeOf(asked);
    expect(tree.holdsUntilMs).toBe(Math.max(...asked.map((one) => one.redacted_summary.expires_at)));
  });

  it("takes no text of people or tools into a span", () => {
    const event = eventOf(
      draft(
        "agent.tool.completed",
        {
          outcome: "failed",
          duration_ms: 1n,
          output_bytes: 1,
          output_preview: "sk-test-1",
          error_preview: "deploy --token=abc",
          tool_alias: null,
        },
        { execution: { session_id: "s", tool_call_id: "c" } },
      ),
    );
    expect(JSON.stringify(treeOf([event]))).not.toMatch(/sk-test-1|token=abc/);
  });
});
