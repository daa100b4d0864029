import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { traceHistory } from "../../test/harness/trace-history.ts";
import { mergeClients, mergeSpans } from "./merge.ts";
import type { TracedEvent } from "./traced-events.ts";
import { toTraceChange } from "./parts.ts";
import type { ClientTrace, SpanState } from "./words.ts";

const source = { topic: "t", partition: 0, offset: 0n };

/** The states that events leave, by span id. */
function foldOf(events: readonly TracedEvent[]): Map<string, SpanState> {
  const states = new Map<string, SpanState>();
  for (const part of events.flatMap((event) => toTraceChange(event, source).spans)) {
    const known = states.get(part.spanId);
    states.set(part.spanId, known === undefined ? part : mergeSpans(known, part));
  }
  return states;
}

const partsOf = (seed: number): SpanState[] =>
  (traceHistory({ seed, calls: 6 }).events as TracedEvent[]).flatMap((event) => [
    ...toTraceChange(event, source).spans,
  ]);

/** Parts of one span that disagree in everything. */
const anyPart = fc
  .record({
    parentId: fc.constantFrom("0000000000000001", "0000000000000002"),
    parentRank: fc.integer({ min: 1, max: 6 }),
    isReal: fc.boolean(),
    causeEvent: fc.constantFrom(null, "a", "b"),
    startRank: fc.integer({ min: 1, max: 2 }),
    startedAt: fc.integer({ min: 0, max: 9 }),
    endRank: fc.integer({ min: 1, max: 3 }),
    endedAt: fc.integer({ min: 0, max: 9 }),
    holdsUntil: fc.option(fc.integer({ min: 0, max: 9 })),
    statusRank: fc.integer({ min: 0, max: 2 }),
    status: fc.constantFrom("unset" as const, "ok" as const, "error" as const),
    errorType: fc.constantFrom(null, "x", "y"),
    attributes: fc.dictionary(fc.constantFrom("p", "q"), fc.oneof(fc.nat(9), fc.string({ maxLength: 2 }))),
    links: fc.uniqueArray(fc.constantFrom("l1", "l2", "l3")).map((all) => all.sort()),
  })
  .map((fields): SpanState => ({ spanId: "s", topic: "call", identity: "i", ...fields }));

describe("what is known of a span", () => {
  it("gives one state, whatever the order, however often", () => {
    fc.assert(
      fc.property(anyPart, anyPart, anyPart, (a, b, c) => {
        expect(mergeSpans(a, b)).toEqual(mergeSpans(b, a));
        expect(mergeSpans(mergeSpans(a, b), c)).toEqual(mergeSpans(a, mergeSpans(b, c)));
        expect(mergeSpans(mergeSpans(a, b), b)).toEqual(mergeSpans(a, b));
      }),
    );
  });

  it("is the same for shuffled and repeated events of a history", () => {
    fc.assert(
      fc.property(fc.nat(10_000), fc.infiniteStream(fc.nat(1_000_000)), (seed, numbers) => {
        const events = traceHistory({ seed, calls: 8 }).events as TracedEvent[];
        const order = [...events, ...events.slice(0, 9)]
          .map((event) => ({ event, at: numbers.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ event }) => event);
        expect(foldOf(order)).toEqual(foldOf(events));
      }),
      { numRuns: 60 },
    );
  });

  it("takes the client's trace from the earliest event", () => {
    const client = (at: number, eventId: string): ClientTrace => ({ at, eventId, traceparent: eventId });
    expect(mergeClients(client(2, "a"), client(1, "b"))?.eventId).toBe("b");
    expect(mergeClients(client(1, "b"), client(1, "a"))?.eventId).toBe("a");
    expect(mergeClients(null, client(1, "a"))?.eventId).toBe("a");
  });

  it("makes at most six parts of one event, which the cut counts on", () => {
    for (const event of traceHistory({ seed: 3, calls: 60 }).events as TracedEvent[]) {
      expect(toTraceChange(event, source).spans.length).toBeLessThanOrEqual(6);
    }
    expect(partsOf(1).every((part) => part.spanId.length === 16)).toBe(true);
  });
});
