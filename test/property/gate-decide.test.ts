import { describe, expect, it } from "vitest";
import type { DecisionName } from "../../schemas/gate.ts";
import { decisions } from "../../schemas/gate.ts";
import type { Verdict } from "../../services/gate/policy/policy.ts";
import type { Ruling } from "../../services/gate/ruling.ts";
import type { Decide, DecideSteps } from "../../services/gate/stages/decide.ts";
import { createDecide, decide, gateSteps } from "../../services/gate/stages/decide.ts";
import type { Outcome, Scenario } from "./gate-reference.ts";
import { referTo } from "./gate-reference.ts";
import { runScenario, toOutcome, wantedOf } from "./gate-scenario-run.ts";
import { addRule, Dice, makeScenario } from "./gate-scenarios.ts";

/** Cases that are compared with the reference; each is made from its number. */
const caseCount = 100_000;
/** Cases of the other promises: each takes several decisions. */
const sampleCount = 5_000;

/** One text for one outcome. What a failed rule says in words is not compared. */
function toText(outcome: Outcome): string {
  const { modifiedInput, message, reason } = outcome;
  return JSON.stringify({
    ...outcome,
    message: reason === "RULE_FAILED" ? "" : message,
    modifiedInput: modifiedInput === null ? null : Object.entries(modifiedInput).sort(),
  });
}

interface Case {
  readonly seed: number;
  readonly scenario: Scenario;
  readonly expected: Outcome;
  readonly ruling: Ruling;
}
function* cases(count: number): Generator<Case> {
  for (let seed = 1; seed <= count; seed += 1) {
    const scenario = makeScenario(seed);
    const expected = referTo(scenario);
    yield { seed, scenario, expected, ruling: runScenario(scenario, decide, expected.planDigest) };
  }
}

describe("the decision", () => {
  it("agrees with a plain reading of the design in 100,000 random cases, each answer in at least 5 % of them", () => {
    const counts = new Map<DecisionName, number>(decisions.map((name) => [name, 0]));
    const reasons = new Set<string>();
    for (const { seed, expected, ruling } of cases(caseCount)) {
      const outcome = toOutcome(ruling);
      if (toText(outcome) !== toText(expected)) {
        expect({ seed, ...outcome }).toEqual({ seed, ...expected });
        expect.unreachable(`case ${String(seed)} differs`);
      }
      counts.set(ruling.decision, (counts.get(ruling.decision) ?? 0) + 1);
      reasons.add(ruling.reason);
    }
    for (const [name, count] of counts) expect(count, name).toBeGreaterThanOrEqual(caseCount / 20);
    expect([...reasons].sort()).toEqual(allReasons);
  }, 300_000);

  it("gives the same bytes for the same input, whatever the order of rules and facts", () => {
    for (const { seed, scenario, expected, ruling } of cases(sampleCount)) {
      const bytes = JSON.stringify(ruling);
      const other = shuffle(scenario, seed);
      if (JSON.stringify(runScenario(scenario, decide, expected.planDigest)) !== bytes) {
        expect.unreachable(`case ${String(seed)} is decided in two ways`);
      }
      const shuffled = JSON.stringify(runScenario(other, decide, expected.planDigest));
      if (shuffled !== bytes) {
        expect(JSON.parse(shuffled), `case ${String(seed)}`).toEqual(JSON.parse(bytes));
        expect.unreachable(`case ${String(seed)} depends on an order`);
      }
    }
  }, 120_000);

  it("is never turned from a deny into anything else by an added rule", () => {
    let denied = 0;
    for (const { seed, scenario, expected, ruling } of cases(sampleCount)) {
      // Where nobody spoke, a rule that speaks is the first word and overturns nothing.
      if (ruling.decision !== "deny" || ruling.reason === "NO_RULE_SPOKE") continue;
      denied += 1;
      // A deny of what a rewrite made says nothing of what another rewrite would make.
      const isOfRewrite = ruling.notes.some((one) => one.kind === "rewrite" && one.fields.length > 0);
      const more = runScenario(addRule(scenario, seed, !isOfRewrite), decide, expected.planDigest);
      if (more.decision !== "deny") expect.unreachable(`case ${String(seed)} became ${more.decision}`);
    }
    expect(denied).toBeGreaterThan(sampleCount / 20);
  }, 120_000);

  it("never changes tool, action, resource or environment by a rewrite, nor widens a limit", () => {
    let modified = 0;
    for (const { seed, scenario, expected, ruling } of cases(sampleCount)) {
      if (ruling.decision !== "modify" && !isRewrittenQuestion(ruling)) continue;
      modified += 1;
      const plainScenario = { ...scenario, rules: { ...scenario.rules, rewrites: [] } };
      const plain = runScenario(plainScenario, decide, expected.planDigest);
      const where = `case ${String(seed)}`;
      const [before, after] = [plain.plan, ruling.plan];
      expect([after.tool, after.action, after.environment, after.working_directory], where).toEqual([
        before.tool,
        before.action,
        before.environment,
        before.working_directory,
      ]);
      if (before.resource !== after.resource) {
        expect(before.tool, where).toBe("shell.run");
        expect(plain.classified.signals, where).toEqual(
          expect.arrayContaining([...ruling.classified.signals]),
        );
      }
      expect(
        gateSteps.mergeConstraints([plain.constraints, ruling.constraints]),
        `${where}: wider than without the rewrite`,
      ).toEqual(ruling.constraints);
      if (ruling.decision === "modify") expect(ruling.modifiedInput, where).not.toBeNull();
    }
    expect(modified).toBeGreaterThan(sampleCount / 20);
  }, 120_000);
});

describe("what has to be known before", () => {
  it("names every counter and every fact that a decision asks for", () => {
    for (const { seed, scenario, ruling } of cases(sampleCount)) {
      const wanted = wantedOf(scenario);
      const where = `case ${String(seed)}`;
      const missed = ruling.spends.filter((one) => !wanted.counters.includes(one.key));
      expect(missed, where).toEqual([]);
      const asked = ruling.notes.flatMap((one) => (one.kind === "fact" ? [one.fact] : []));
      expect(
        asked.filter((one) => !wanted.facts.includes(one)),
        where,
      ).toEqual([]);
    }
  }, 120_000);
});

const allReasons = [
  "ALLOWED",
  "APPROVAL_REFUSED",
  "APPROVAL_REQUIRED",
  "APPROVED",
  "BUDGET_SPENT",
  "DEFER_EXPIRED",
  "FACT_DENIES",
  "FACT_MISSING",
  "INPUT_UNREADABLE",
  "NOT_AUTHORIZED",
  "NO_RULE_SPOKE",
  "PLAN_REVOKED",
  "RATE_LIMITED",
  "REWRITTEN",
  "RULE_FAILED",
  "STATIC_DENY",
  "TENANT_FROZEN",
  "TOOL_UNKNOWN",
  "TOO_MANY_APPROVALS",
];

function isRewrittenQuestion({ decision, notes }: Ruling): boolean {
  return (
    decision === "require_approval" && notes.some((one) => one.kind === "rewrite" && one.fields.length > 0)
  );
}

/** The same policy and facts with everything that has an order in another one. */
function shuffle(scenario: Scenario, seed: number): Scenario {
  const dice = new Dice(seed);
  const entries = <T>(object: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(dice.shuffled(Object.entries(object)));
  const { rules } = scenario;
  return {
    ...scenario,
    tools: dice.shuffled(scenario.tools),
    rules: {
      staticDeny: dice.shuffled(rules.staticDeny),
      forbid: dice.shuffled(rules.forbid),
      permit: dice.shuffled(rules.permit),
      risk: dice.shuffled(rules.risk),
      approvals: dice.shuffled(rules.approvals),
      facts: dice.shuffled(rules.facts),
      limits: dice.shuffled(rules.limits),
      labels: dice.shuffled(rules.labels),
      rewrites: dice.shuffled(rules.rewrites),
      rates: dice.shuffled(rules.rates),
      budgets: dice.shuffled(rules.budgets),
    },
    sessionLabels: dice.shuffled(scenario.sessionLabels),
    spent: entries(scenario.spent),
    dated: entries(scenario.dated),
    contents: dice.shuffled(scenario.contents),
  };
}

/** A gate with one step replaced. */
function withSteps(steps: Partial<DecideSteps>): Decide {
  return createDecide({ ...gateSteps, ...steps });
}
/** A gate whose merge sees other verdicts than were spoken. */
function withSeen(see: (one: Verdict) => Verdict | null): Decide {
  return withSteps({
    mergeVerdicts: (all) => gateSteps.mergeVerdicts(all.map(see).filter((one) => one !== null)),
  });
}
/** A gate that exchanges two decisions before the merge, and back after it. */
function withSwapped(one: Verdict["decision"], other: Verdict["decision"]): Decide {
  const swap = (name: Verdict["decision"]): Verdict["decision"] =>
    name === one ? other : name === other ? one : name;
  return withSteps({
    mergeVerdicts(all) {
      if (all.length === 0) return gateSteps.mergeVerdicts(all);
      const merged = gateSteps.mergeVerdicts(all.map((each) => ({ ...each, decision: swap(each.decision) })));
      return { ...merged, decision: swap(merged.decision) };
    },
  });
}

const faults: Readonly<Record<string, Decide>> = {
  "an allow that leads over a question": withSwapped("allow", "require_approval"),
  "a question that leads over a deferral": withSwapped("require_approval", "defer"),
  "a deferral that leads over a deny": withSwapped("defer", "deny"),
  "an absolute deny that is like any other": withSeen((one) => ({ ...one, isAbsolute: false })),
  "a priority that counts the wrong way round": withSeen((one) => ({ ...one, priority: -one.priority })),
  "a priority that counts for nothing": withSeen((one) => ({ ...one, priority: 0 })),
  "silence that allows": withSteps({
    mergeVerdicts: (all) => {
      const merged = gateSteps.mergeVerdicts(all);
      return merged.leadRule === null ? { ...merged, decision: "allow" } : merged;
    },
  }),
  "a failed rule that is passed over": withSeen((one) => (one.reason === "RULE_FAILED" ? null : one)),
  "the last limit instead of the strictest": withSteps({
    mergeConstraints: (all) => gateSteps.mergeConstraints(all.slice(-1)),
  }),
  "paths that are added up": withSteps({
    mergeConstraints: (all) => {
      const lists = all.flatMap((one) => (one.paths === undefined ? [] : [one.paths]));
      const merged = gateSteps.mergeConstraints(all);
      return lists.length === 0 ? merged : { ...merged, paths: [...new Set(lists.flat())].sort() };
    },
  }),
  "a rewrite that may change anything": withSteps({ findRewriteFault: () => null }),
  "a rewrite that holds against its priority": withSteps({
    rewriteInput(rules, input) {
      const turned = new Map(rules.map((rule) => [{ ...rule, priority: -rule.priority }, rule]));
      const { applied, ...rest } = gateSteps.rewriteInput([...turned.keys()], input);
      return { ...rest, applied: applied.map((one) => ({ ...one, rule: turned.get(one.rule) ?? one.rule })) };
    },
  }),
  "an approval of another plan": withSteps({
    judgeApproval: (facts, plan) =>
      gateSteps.judgeApproval(facts, { ...plan, digest: facts.approval?.planDigest ?? "" }),
  }),
  "an approval without an end": withSteps({
    judgeApproval: ({ approval, ...facts }, plan) =>
      gateSteps.judgeApproval(
        { ...facts, approval: approval === null ? null : { ...approval, expiresAtMs: Infinity } },
        plan,
      ),
  }),
  "any number of open approvals": withSteps({
    judgeApproval: (facts, plan) =>
      gateSteps.judgeApproval({ ...facts, session: { ...facts.session, openApprovals: 0 } }, plan),
  }),
  "an approval for reasons that the person never saw": withSteps({
    judgeApproval: (facts, plan) => gateSteps.judgeApproval(facts, { ...plan, askingRules: [] }),
  }),
  "a call more than the limit": (request, facts, policy, decideWith) => {
    const counters = Object.entries(facts.counters).map(([key, used]): [string, number] => [key, used - 1]);
    return decide(request, { ...facts, counters: Object.fromEntries(counters) }, policy, decideWith);
  },
  "a stage that is left out": withSteps({
    stages: gateSteps.stages.filter(({ name }) => name !== "static-deny"),
  }),
  "rules that are silent about having lost": (...asked) => {
    const ruling = decide(...asked);
    const verdicts = ruling.verdicts.filter((one) => one.decision === ruling.decision);
    return { ...ruling, verdicts };
  },
};

describe("the comparison with the reference", () => {
  it.each(Object.entries(faults))("catches %s", (_fault, faulty) => {
    for (let seed = 1; seed <= caseCount; seed += 1) {
      const scenario = makeScenario(seed);
      const expected = referTo(scenario);
      if (toText(toOutcome(runScenario(scenario, faulty, expected.planDigest))) !== toText(expected)) return;
    }
    expect.unreachable("no case shows it");
  });
});
