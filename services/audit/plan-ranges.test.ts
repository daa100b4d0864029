import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planSpans } from "./plan-ranges.ts";

describe("planSpans", () => {
  it("covers every offset once, in order, whatever the partitions' pace and the size of a run", () => {
    const paces = fc.array(fc.array(fc.nat(30), { minLength: 3, maxLength: 3 }), { maxLength: 30 });
    fc.assert(
      fc.property(paces, fc.integer({ min: 1, max: 25 }), (rounds, maxOffsets) => {
        const marks = [0n, 0n, 0n];
        const sealed = [0n, 0n, 0n];
        const covered: bigint[][] = [[], [], []];
        const run = (): number => {
          const open = marks.map((to, partition) => ({
            topic: "t",
            partition,
            from: sealed[partition] ?? 0n,
            to,
          }));
          const spans = planSpans(open, maxOffsets);
          for (const { partition, from, to } of spans) {
            expect(from).toBe(sealed[partition]);
            expect(to).toBeLessThanOrEqual(marks[partition] ?? 0n);
            for (let offset = from; offset < to; offset += 1n) covered[partition]?.push(offset);
            sealed[partition] = to;
          }
          return spans.length;
        };
        for (const round of rounds) {
          round.forEach((step, partition) => (marks[partition] = (marks[partition] ?? 0n) + BigInt(step)));
          run();
        }
        while (run() > 0);
        marks.forEach((mark, partition) => {
          expect(covered[partition]).toEqual(
            Array.from({ length: Number(mark) }, (_, index) => BigInt(index)),
          );
        });
      }),
    );
  });
});
