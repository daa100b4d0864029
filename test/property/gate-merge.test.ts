import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Verdict } from "../../services/gate/policy/policy.ts";
import { mergeConstraints, mergeVerdicts } from "../../services/gate/stages/merge.ts";

const verdict: fc.Arbitrary<Verdict> = fc.record({
  rule: fc.constantFrom("a.one", "b.two", "c.three", "d.four", "e.five"),
  stage: fc.constantFrom("classify", "static-deny", "authorize", "risk"),
  decision: fc.constantFrom("allow", "deny", "require_approval", "defer"),
  reason: fc.constantFrom("ALLOWED", "STATIC_DENY", "RULE_FAILED", "NO_RULE_SPOKE"),
  message: fc.constantFrom("x", "y"),
  priority: fc.integer({ min: -1000, max: 1000 }),
  isAbsolute: fc.boolean(),
});
const verdicts = fc.array(verdict, { maxLength: 12 });
const order = ["deny", "defer", "require_approval", "allow"];

/** The rule of the design, said as plainly as can be. */
const naive = (all: readonly Verdict[]): { decision: string; lead: Verdict | undefined } => {
  const decision = order.find((name) => all.some((one) => one.decision === name)) ?? "deny";
  const [lead] = all
    .filter((one) => one.decision === decision)
    .sort(
      (left, right) =>
        Number(right.isAbsolute) - Number(left.isAbsolute) ||
        right.priority - left.priority ||
        left.rule.localeCompare(right.rule, "en"),
    );
  return { decision, lead };
};

describe("merging verdicts", () => {
  it("never lets an added rule overturn a deny", () => {
    fc.assert(
      fc.property(verdicts, verdict, (all, one) => {
        if (mergeVerdicts(all).decision !== "deny" || all.length === 0) return;
        expect(mergeVerdicts([...all, one]).decision).toBe("deny");
      }),
    );
  });

  it("never gets looser by an added rule", () => {
    fc.assert(
      fc.property(verdicts, verdict, (all, one) => {
        if (all.length === 0) return;
        const before = order.indexOf(mergeVerdicts(all).decision);
        expect(order.indexOf(mergeVerdicts([...all, one]).decision)).toBeLessThanOrEqual(before);
      }),
    );
  });

  it("does not depend on the order of the rules", () => {
    fc.assert(
      fc.property(
        verdicts.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
        ),
        ([all, shuffled]) => {
          expect(mergeVerdicts(shuffled)).toEqual(mergeVerdicts(all));
        },
      ),
    );
  });

  it("agrees with the plain reading of the design, and names the rule that leads", () => {
    fc.assert(
      fc.property(verdicts, (all) => {
        const merged = mergeVerdicts(all);
        const { decision, lead } = naive(all);
        expect(merged.decision).toBe(decision);
        expect(merged.leadRule).toBe(lead?.rule ?? null);
        if (lead === undefined) expect(merged.reason).toBe("NO_RULE_SPOKE");
      }),
    );
  });
});

describe("merging constraints", () => {
  const folders = ["/a", "/a/b", "/a/b/c", "/ab", "/b/", "/", "rel", "rel/in", "../out", "/a/../c"];
  const constraints = fc.record(
    {
      network: fc.constantFrom("none", "listed", "any"),
      max_runtime_seconds: fc.integer({ min: 1, max: 1000 }),
      max_calls: fc.integer({ min: 1, max: 10 }),
      paths: fc.uniqueArray(fc.constantFrom(...folders)),
    },
    { requiredKeys: [] },
  );

  it("keeps the most restrictive of each, in any order", () => {
    fc.assert(
      fc.property(fc.array(constraints, { maxLength: 5 }), (all) => {
        const merged = mergeConstraints(all);
        expect(mergeConstraints([...all].reverse())).toEqual(merged);
        for (const one of all) {
          if (one.max_runtime_seconds !== undefined) {
            expect(merged.max_runtime_seconds).toBeLessThanOrEqual(one.max_runtime_seconds);
          }
          if (one.max_calls !== undefined) expect(merged.max_calls).toBeLessThanOrEqual(one.max_calls);
          if (one.network === "none") expect(merged.network).toBe("none");
        }
        expect(mergeConstraints([merged, ...all])).toEqual(merged);
      }),
    );
  });

  it("allows a file exactly when every list allows it", () => {
    const files = [
      "/a/x",
      "/a/b/x",
      "/a/b/c/x",
      "/ab/x",
      "/b/x",
      "/c/x",
      "/x",
      "rel/x",
      "rel/in/x",
      "../out/x",
    ];
    /** The folders of a list, as a reader of it would resolve them. */
    const allows = (list: readonly string[], file: string): boolean =>
      list.some((folder) => {
        const plain = folder === "/a/../c" ? "/c" : folder.replace(/(.)\/$/, "$1");
        return file.startsWith(plain === "/" ? "/" : `${plain}/`);
      });
    fc.assert(
      fc.property(fc.array(constraints, { maxLength: 4 }), fc.constantFrom(...files), (all, file) => {
        const lists = all.flatMap((one) => (one.paths === undefined ? [] : [one.paths]));
        const { paths } = mergeConstraints(all);
        if (paths === undefined) expect(lists).toEqual([]);
        else expect(allows(paths, file)).toBe(lists.every((list) => allows(list, file)));
      }),
      { numRuns: 2_000 },
    );
  });
});
