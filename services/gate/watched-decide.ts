import type { GateRequest } from "../../schemas/gate.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { StageName, Verdict } from "./policy/policy.ts";
import { stageNames } from "./policy/policy.ts";
import type { Ruling } from "./ruling.ts";
import type { Decide, DecideSteps } from "./stages/decide.ts";
import { createDecide } from "./stages/decide.ts";

export interface WatchOptions {
  readonly steps: DecideSteps;
  readonly monotonicMs: () => number;
  /** What one decision may take, its classification included. */
  readonly limitMs: number;
  /** What the classification of a request took. */
  readonly classifyMs: (request: GateRequest) => number;
  readonly metrics: Metrics;
}

/** Every so many decisions are measured: a histogram costs about as much as a stage. */
const sampledOneIn = 16;

/** The rule that speaks for the deadline. */
export const tooSlowRule = "gate.too-slow";

/**
 * Decides, and measures it. A decision is synchronous, so that it cannot be broken off; but one that took too long allows
 * nothing: whatever makes it slow may be what hides an effect.
 */
export function createWatchedDecide(options: WatchOptions): Decide {
  const { steps, monotonicMs, limitMs, metrics } = options;
  const seconds = metrics.histogram(
    "fabric_gate_stage_seconds",
    `time of a stage, one decision in ${String(sampledOneIn)}`,
    ["stage"],
    [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1],
  );
  const slow = metrics.counter(
    "fabric_gate_slow_decisions_total",
    "decisions that took longer than one may, by the stage that took most",
    ["stage"],
  );
  /** Of the decision under way, by the place of its stage. */
  const spent = new Float64Array(stageNames.length);
  let made = 0;

  function timed<A extends unknown[], R>(stage: StageName, work: (...args: A) => R): (...args: A) => R {
    const at = stageNames.indexOf(stage);
    return (...args) => {
      const startedMs = monotonicMs();
      try {
        return work(...args);
      } finally {
        spent[at] = (spent[at] ?? 0) + monotonicMs() - startedMs;
      }
    };
  }
  const decide = createDecide({
    ...steps,
    stages: steps.stages.map((stage) => ({
      name: stage.name,
      judge: timed(stage.name, (input) => stage.judge(input)),
    })),
    rewriteInput: timed("normalize", steps.rewriteInput),
    findRewriteFault: timed("normalize", steps.findRewriteFault),
    judgeApproval: timed("capability", steps.judgeApproval),
  });

  return (request, facts, policy, decideWith) => {
    spent.fill(0);
    const knownMs = options.classifyMs(request);
    const startedMs = monotonicMs();
    const ruling = decide(request, facts, policy, decideWith);
    const tookMs = monotonicMs() - startedMs;
    const classifyMs = options.classifyMs(request);
    const [classifyAt, planAt] = [stageNames.indexOf("classify"), stageNames.indexOf("plan")];
    // What was made while it decided is in its time already; the rest is digests and merging.
    const stagesMs = spent.reduce((sum, one) => sum + one, classifyMs - knownMs);
    spent[classifyAt] = (spent[classifyAt] ?? 0) + classifyMs;
    spent[planAt] = Math.max(0, tookMs - stagesMs);
    made += 1;
    if (made % sampledOneIn === 0) {
      stageNames.forEach((stage, at) => {
        seconds.observe((spent[at] ?? 0) / 1000, { stage });
      });
    }
    if (knownMs + tookMs <= limitMs) return ruling;
    const stage = stageNames[spent.indexOf(Math.max(...spent))] ?? "classify";
    slow.add({ stage });
    return ruling.decision === "deny" ? ruling : toTooSlow(ruling, stage, limitMs);
  };
}

function toTooSlow(ruling: Ruling, stage: StageName, limitMs: number): Ruling {
  const message = `the decision took longer than ${String(limitMs)} ms, most of it in stage \`${stage}\`; nothing was allowed, ask again`;
  const verdict: Verdict = {
    rule: tooSlowRule,
    stage,
    decision: "deny",
    reason: "GATE_TIMEOUT",
    message,
    priority: 10_000,
    isAbsolute: true,
  };
  return Object.assign({}, ruling, {
    decision: "deny",
    reason: "GATE_TIMEOUT",
    message,
    leadRule: tooSlowRule,
    verdicts: [verdict, ...ruling.verdicts],
    matchedRules: [...ruling.matchedRules, tooSlowRule].sort(),
    labels: [],
    modifiedInput: null,
    needsCapability: false,
    approval: { kind: "none" },
    voidsApproval: null,
    waitsFor: null,
    spends: [],
  } as const);
}
