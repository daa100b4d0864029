import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findTraces, loadTraces } from "../../processors/trace/queries.ts";
import { createTrace } from "../../processors/trace/trace.ts";
import { toSpanId } from "../../processors/trace/ids.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { traceHistory } from "../harness/trace-history.ts";
import type { TraceRig } from "../harness/trace-rig.ts";
import { openTraceRig } from "../harness/trace-rig.ts";

let rig: TraceRig;
beforeAll(async () => {
  rig = await openTraceRig();
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

/** The same events in an order that the numbers make. */
const shuffled = (events: readonly Envelope[], numbers: Iterator<number>): readonly Envelope[] =>
  events
    .map((event) => ({ event, at: numbers.next().value as number }))
    .sort((a, b) => a.at - b.at)
    .map(({ event }) => event);
const bus = new Set(["send", "receive", "process"]);

describe("spans in Postgres", () => {
  it("ends in the same rows for shuffled, repeated and rebuilt events, whatever the batches", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(100_000),
        fc.integer({ min: 1, max: 60 }),
        fc.infiniteStream(fc.nat(1_000_000)),
        async (seed, size, numbers) => {
          const events = [
            ...traceHistory({ seed: seed + 1, calls: 10 }).events,
            ...traceHistory({
              seed: seed + 2,
              calls: 5,
              traceparent: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
            }).events,
          ];
          await rig.clear();
          await rig.project(events);
          const clean = await rig.dump();
          await rig.clear();
          const order = shuffled(events, numbers);
          await rig.project([...order.slice(0, 20), ...order], size);
          expect(await rig.dump()).toEqual(clean);
        },
      ),
      { numRuns: 12 },
    );
  });

  it("gives back the tree that the history was written for", async () => {
    const history = traceHistory({ seed: 7, calls: 30 });
    await rig.project([...history.events].reverse(), 7);
    const [tree] = await loadTraces(rig.as("fabric_auditor"), [history]);
    const idOf = (identity: string) => toSpanId(history.tenantId, history.correlationId, identity);
    expect(
      tree?.spans.filter(({ topic }) => !bus.has(topic)).map(({ spanId, parentId }) => [spanId, parentId]),
    ).toHaveLength(history.expected.length);
    expect(new Set(tree?.spans.map(({ spanId, parentId }) => `${spanId} < ${String(parentId)}`))).toEqual(
      new Set([
        ...history.expected.map(
          ({ identity, parent }) => `${idOf(identity)} < ${parent === null ? "null" : idOf(parent)}`,
        ),
        ...(tree?.spans ?? [])
          .filter(({ topic }) => bus.has(topic))
          .map(({ spanId, parentId }) => `${spanId} < ${String(parentId)}`),
      ]),
    );
  });

  it("keeps the same spans of a long correlation, whatever the order, and says that there were more", async () => {
    const events = traceHistory({ seed: 11, calls: 120 }).events;
    const small = createTrace({ maxSpans: 50 });
    await rig.project(events, 40, small);
    const clean = await rig.dump();
    expect(clean["spans"]).toHaveLength(50);
    await rig.clear();
    await rig.project([...events].reverse(), 13, small);
    expect(await rig.dump()).toEqual(clean);
    const [tree] = await loadTraces(rig.as("fabric_auditor"), [traceHistory({ seed: 11, calls: 120 })]);
    expect(tree?.spans[0]?.attributes).toMatchObject({
      "fabric.truncated": true,
      "fabric.events": events.length,
    });
    const ids = new Set(tree?.spans.map((one) => one.spanId));
    expect(tree?.spans.filter((one) => one.parentId !== null && !ids.has(one.parentId))).toEqual([]);
  });

  it("takes batches of many topics at once without a deadlock", async () => {
    const events = [1, 2, 3, 4].flatMap((seed) => traceHistory({ seed, calls: 20 }).events);
    await rig.project(events);
    const clean = await rig.dump();
    await rig.clear();
    const lanes = [0, 1, 2, 3].map((lane) => events.filter((_, index) => index % 4 === lane));
    await Promise.all(
      lanes.map((lane, index) => rig.project(index % 2 === 0 ? lane : [...lane].reverse(), 9)),
    );
    expect(await rig.dump()).toEqual(clean);
  });

  it("links the consume spans of a batch to the producing spans of its other messages, of the same tenant alone", async () => {
    const one = traceHistory({ seed: 21, calls: 3 });
    const client = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    const two = traceHistory({ seed: 22, calls: 3, traceparent: client });
    const stranger = traceHistory({ seed: 23, calls: 3 });
    const strange = stranger.events.map((event) => ({ ...event, tenant_id: "globex" }));
    const decisionsOf = (events: readonly Envelope[]) =>
      events.filter(({ type }) => /^agent[.]tool[.](authorized|denied|deferred)$/.test(type)).slice(0, 3);
    const batch = [...decisionsOf(one.events), ...decisionsOf(two.events), ...decisionsOf(strange)];
    await rig.project(batch);
    // Alone in its batch: nothing to link to.
    const alone = traceHistory({ seed: 24, calls: 1 });
    await rig.project(decisionsOf(alone.events).slice(0, 1));
    const trees = await loadTraces(rig.as("fabric_auditor"), [one, two, alone]);
    const linksOf = (at: number) =>
      trees[at]?.spans.filter(({ topic }) => topic === "process").map(({ links }) => links.length);
    expect(linksOf(0)).toEqual([5, 5, 5]);
    expect(linksOf(2)).toEqual([0]);
    const sends = trees.flatMap(({ traceId, spans }) =>
      spans.filter(({ topic }) => topic === "send").map(({ spanId }) => `00-${traceId}-${spanId}-01`),
    );
    for (const { traceId, spans } of trees.slice(0, 2)) {
      for (const { links, parentId } of spans.filter(({ topic }) => topic === "process")) {
        expect(links.filter((link) => !sends.includes(link))).toEqual([]);
        expect(links).not.toContain(`00-${traceId}-${String(parentId)}-01`);
      }
    }
  });

  it("finds a correlation by the ids that people have at hand", async () => {
    const history = traceHistory({ seed: 7, calls: 30 });
    await rig.project(history.events);
    const key = [{ tenantId: "acme", correlationId: history.correlationId }];
    const decision = history.events.find((one) => one.type === "agent.tool.authorized");
    const auditor = rig.as("fabric_auditor");
    for (const id of [
      history.correlationId,
      "s7",
      decision?.redacted_summary && "decision_id" in decision.redacted_summary
        ? decision.redacted_summary.decision_id
        : "",
    ]) {
      expect(await findTraces(auditor, id, 5), id).toEqual(key);
    }
    expect(await findTraces(auditor, "nothing", 5)).toEqual([]);
  });
});
