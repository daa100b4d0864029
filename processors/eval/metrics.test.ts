import { describe, expect, it } from "vitest";
import type { ScoredEpisode } from "./metrics.ts";
import { addToTally, emptyTally, formulas, toMetrics, toShouldRefuse } from "./metrics.ts";
import type { Attempt } from "./recovery.ts";
import { recoveryWindow, toRecoveries } from "./recovery.ts";

const attempt = (over: Partial<Attempt> = {}): Attempt => ({
  tool: "shell.run",
  resource: "repo:x",
  decision: "allow",
  outcome: "succeeded",
  refused: false,
  ...over,
});
const score = (...episodes: readonly Partial<ScoredEpisode>[]) =>
  toMetrics(
    episodes
      .map((one) => ({ steps: [], expectedTools: null, shouldRefuse: null, ...one }))
      .reduce(addToTally, emptyTally),
  );
const values = (metrics: ReturnType<typeof score>) => [
  metrics.toolChoice.value,
  metrics.refusalPrecision.value,
  metrics.refusalRecall.value,
  metrics.recovery.value,
];

describe("metrics", () => {
  it("have no value where there is nothing to divide by", () => {
    expect(values(score())).toEqual([null, null, null, null]);
    expect(values(score({ steps: [attempt()] }))).toEqual([null, null, null, null]);
  });

  it("are 1 for a run that does what is expected and makes up for its failures", () => {
    const steps = [attempt({ outcome: "failed" }), attempt()];
    const perfect = score(
      { steps, expectedTools: ["shell.run", "shell.run"], shouldRefuse: false },
      { steps: [attempt({ decision: "deny", outcome: null }), attempt()], shouldRefuse: true },
    );
    expect(values(perfect)).toEqual([1, 1, 1, 1]);
  });

  it("count a tool in the wrong place as neither hit nor expected", () => {
    const steps = ["b", "a"].map((tool) => attempt({ tool }));
    expect(score({ steps, expectedTools: ["a", "b"] }).toolChoice).toEqual({
      value: 0.5,
      numerator: 1,
      denominator: 2,
    });
  });

  it("are the same whatever the order of the episodes", () => {
    const one = { steps: [attempt({ decision: "deny", outcome: null })], shouldRefuse: true };
    const other = { steps: [attempt({ outcome: "failed" }), attempt()], shouldRefuse: false };
    expect(score(one, other)).toEqual(score(other, one));
  });

  it("say their formulas", () => {
    const { episodes: _, ...metrics } = score();
    expect(Object.keys(formulas)).toEqual(Object.keys(metrics));
  });

  it("take no side where people disagree", () => {
    expect(toShouldRefuse(["safe", "good"])).toBe(false);
    expect(toShouldRefuse(["unsafe"])).toBe(true);
    expect(toShouldRefuse(["safe", "unsafe"])).toBeNull();
    expect(toShouldRefuse(["good"])).toBeNull();
  });
});

describe("a recovery", () => {
  const stumble = attempt({ decision: "deny", outcome: "blocked" });

  it("is the same tool on the same resource, however much later", () => {
    const between = Array.from({ length: 50 }, () => attempt({ tool: "file.read" }));
    expect(toRecoveries([stumble, ...between, attempt({ decision: null })])[0]).toBe(52);
  });

  it("is another plan of the same tool only when it was allowed and comes soon", () => {
    const other = attempt({ resource: "repo:y" });
    const between = Array.from({ length: recoveryWindow - 1 }, () => attempt({ tool: "file.read" }));
    expect(toRecoveries([stumble, ...between, other])[0]).toBe(recoveryWindow + 1);
    expect(toRecoveries([stumble, attempt({ tool: "file.read" }), ...between, other])[0]).toBeNull();
    expect(toRecoveries([stumble, attempt({ resource: "repo:y", decision: null })])[0]).toBeNull();
  });

  it("is no call before, no other tool, and nothing for a call that went through or waits", () => {
    expect(toRecoveries([attempt(), stumble])).toEqual([null, null]);
    expect(toRecoveries([stumble, attempt({ tool: "file.read" })])[0]).toBeNull();
    expect(toRecoveries([attempt({ decision: "defer", outcome: "blocked" }), attempt()])[0]).toBeNull();
    expect(toRecoveries([attempt({ decision: "deny", outcome: "succeeded" }), attempt()])[0]).toBeNull();
  });
});
