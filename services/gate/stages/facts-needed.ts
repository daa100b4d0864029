import type { DatedFact, Facts } from "../facts-of-call.ts";
import type { FactRule, Policy, Verdict } from "../policy/policy.ts";
import type { RuleNote } from "../ruling.ts";
import type { Wait } from "./stage.ts";

/** Names of the dated facts that a policy's rules ask for, sorted: to be fetched before a decision. */
export function wantedFacts(policy: Policy): string[] {
  return [...new Set(policy.facts.map((rule) => rule.fact))].sort();
}

/** What the rules that hold say of their facts. */
export interface FactsJudgement {
  readonly verdicts: Verdict[];
  readonly notes: RuleNote[];
  readonly waits: Wait[];
}

/** Missing or old: deferred, and past the deadline denied. Fresh: denied if its value stands against the call. */
export function judgeFacts(rules: readonly FactRule[], facts: Facts): FactsJudgement {
  const judgement: FactsJudgement = { verdicts: [], notes: [], waits: [] };
  for (const rule of rules) {
    judgement.notes.push({ kind: "fact", rule: rule.id, stage: "risk", fact: rule.fact });
    const said = { rule: rule.id, stage: "risk", priority: rule.priority } as const;
    const known = Object.hasOwn(facts.dated, rule.fact) ? facts.dated[rule.fact] : undefined;
    if (known !== undefined && isFresh(known, rule.maxAgeMs, facts.nowMs)) {
      if (rule.denyWhen.some((value) => value === known.value)) {
        judgement.verdicts.push({ ...said, decision: "deny", reason: "FACT_DENIES", message: rule.message });
      }
      continue;
    }
    const untilMs = (facts.session.deferredSinceMs ?? facts.nowMs) + rule.deadlineMs;
    if (facts.session.deferredSinceMs !== null && !(facts.nowMs < untilMs)) {
      judgement.verdicts.push({
        ...said,
        decision: "deny",
        reason: "DEFER_EXPIRED",
        message: `the fact \`${rule.fact}\` did not come in time: ${rule.message}`,
      });
      continue;
    }
    judgement.verdicts.push({ ...said, decision: "defer", reason: "FACT_MISSING", message: rule.message });
    judgement.waits.push({ fact: rule.fact, untilMs });
  }
  return judgement;
}

/** A fact dated after now comes from another clock: it may be ahead by as much as it may be old, and no more. */
function isFresh({ atMs }: DatedFact, maxAgeMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - atMs) <= maxAgeMs;
}
