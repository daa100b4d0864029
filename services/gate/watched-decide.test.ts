import { describe, expect, it } from "vitest";
import type { GateRequest } from "../../schemas/gate.ts";
import { createMetrics } from "../platform/metrics.ts";
import { createClassifyOnce } from "./classify-once.ts";
import { createClassifier } from "./classifier.ts";
import { givenBundle } from "./policy/given-bundle.ts";
import { parsePolicy } from "./policy/parse-policy.ts";
import type { StageName } from "./policy/policy.ts";
import { loadBashParser } from "./shell/load-bash-parser.ts";
import { loadSqlParser } from "./sql/load-sql-parser.ts";
import { decide, gateSteps } from "./stages/decide.ts";
import { emptyFacts } from "./unavailable.ts";
import { warmUp } from "./warm-up.ts";
import { createWatchedDecide } from "./watched-decide.ts";

const parsed = parsePolicy(givenBundle({}), "given");
if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
// Its rewrite sets a field that the tool's schema does not list, which is a finding of its own.
const policy = { ...parsed.policy, rewrites: [] };
const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
const plainClassify = createClassifier({ bash, sql });
const facts = emptyFacts({ tenantId: "t", environment: "test", nowMs: 0 });
const asked = (command: string): GateRequest => ({
  runtime: "own",
  session_id: "s",
  phase: "before_tool",
  tool: "shell.run",
  input: { command },
  working_directory: "/w",
});

/** A gate whose stage, or whose classification, takes so long. */
const watch = (slow: StageName, tookMs: number) => {
  let nowMs = 0;
  const metrics = createMetrics();
  const once = createClassifyOnce(
    (...args) => {
      if (slow === "classify") nowMs += tookMs;
      return plainClassify(...args);
    },
    () => nowMs,
  );
  const judge = createWatchedDecide({
    steps: {
      ...gateSteps,
      stages: gateSteps.stages.map((stage) => ({
        name: stage.name,
        judge(input) {
          nowMs += stage.name === slow && slow !== "classify" ? tookMs : 1;
          return stage.judge(input);
        },
      })),
    },
    monotonicMs: () => nowMs,
    limitMs: 100,
    classifyMs: once.costMs,
    metrics,
  });
  return {
    metrics,
    decide: (request: GateRequest) =>
      judge(request, facts, policy, { classify: once.classify, operands: [] }),
    classify: (request: GateRequest) => once.classify(request, policy),
  };
};

describe("a decision that is watched", () => {
  it("is the same as one that is not, as long as it is quick", () => {
    const request = asked("ls");
    expect(watch("risk", 40).decide(request)).toEqual(
      decide(request, facts, policy, { classify: plainClassify, operands: [] }),
    );
  });

  it.each(["static-deny", "authorize", "risk", "classify"] as const)(
    "allows nothing when it takes too long, and names the stage %s that took most",
    async (stage) => {
      const { decide: judge, metrics } = watch(stage, 150);
      const ruling = judge(asked("ls"));
      expect(ruling).toMatchObject({
        decision: "deny",
        reason: "GATE_TIMEOUT",
        needsCapability: false,
        labels: [],
        spends: [],
        approval: { kind: "none" },
      });
      expect(ruling.message).toContain(`\`${stage}\``);
      expect(ruling.matchedRules).toContain("gate.too-slow");
      expect(await metrics.render()).toContain(`fabric_gate_slow_decisions_total{stage="${stage}"} 1`);
    },
  );

  it("counts the classification that was made before it was asked", () => {
    const gate = watch("classify", 150);
    const request = asked("ls");
    gate.classify(request);
    expect(gate.decide(request)).toMatchObject({ decision: "deny", reason: "GATE_TIMEOUT" });
  });

  it("keeps the reason of a deny that was slow", () => {
    expect(watch("risk", 150).decide(asked("git push --force"))).toMatchObject({
      decision: "deny",
      reason: "STATIC_DENY",
    });
  });

  it("is measured by stage, one in sixteen", async () => {
    const { decide: judge, metrics } = watch("risk", 3);
    for (let made = 0; made < 33; made += 1) judge(asked("ls"));
    expect(await metrics.render()).toContain('fabric_gate_stage_seconds_count{stage="risk"} 2');
  });
});

describe("warming up", () => {
  it("ends by number and by time", () => {
    const warm = { classify: plainClassify, decide, policy, environment: "test" };
    expect(warmUp({ ...warm, monotonicMs: () => 0, maxDecisions: 20 })).toBe(20);
    let nowMs = 0;
    expect(warmUp({ ...warm, monotonicMs: () => (nowMs += 100), maxMs: 1_000 })).toBeLessThan(12);
  });
});
