import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderTraceTree, toTraceTree } from "./trace-tree.ts";
import type { TraceNode, TraceRow } from "./trace-tree.ts";

const row = (eventId: string, causationId: string | null, recordedAtMs: number): TraceRow => ({
  eventId,
  causationId,
  type: `type.${eventId}`,
  recordedAtMs,
  about: "",
});

const count = (forest: readonly TraceNode[]): number =>
  forest.reduce((sum, node) => sum + 1 + count(node.children), 0);

describe("the causal tree", () => {
  it("hangs each event below its cause, whatever the order of arrival", () => {
    const rows = [row("c", "b", 3), row("a", null, 1), row("b", "a", 2)];
    expect(renderTraceTree(toTraceTree(rows))).toBe(
      ["     +0 ms  type.a", "     +1 ms  └─ type.b", "     +2 ms     └─ type.c"].join("\n"),
    );
  });

  it("shows an event whose cause is missing as a root that says so", () => {
    expect(renderTraceTree(toTraceTree([row("b", "gone", 2)]))).toContain("type.b  (cause not recorded)");
  });

  it("shows every event exactly once, cycles included", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.integer({ min: 0, max: 12 }), fc.option(fc.integer({ min: 0, max: 12 })), fc.nat(50)),
        ),
        (triples) => {
          const byId = new Map(
            triples.map(([id, cause, at]) => [
              id,
              row(String(id), cause === null ? null : String(cause), at),
            ]),
          );
          expect(count(toTraceTree([...byId.values()]))).toBe(byId.size);
        },
      ),
    );
  });
});
