import type { GateRequest } from "../../../schemas/gate.ts";
import { toCounter } from "../counters.ts";
import type { Facts } from "../facts-of-call.ts";
import type { BudgetRule, RateRule, Verdict } from "../policy/policy.ts";
import type { RuleNote, Spend } from "../ruling.ts";

/** What the rules that hold say of what is spent, and what this call would spend. */
export interface LimitsJudgement {
  readonly verdicts: Verdict[];
  readonly notes: RuleNote[];
  readonly spends: Spend[];
}

/** Rates and budgets: a call that would go past one is denied. */
export function judgeLimits(
  { rates, budgets }: { readonly rates: readonly RateRule[]; readonly budgets: readonly BudgetRule[] },
  request: GateRequest,
  facts: Facts,
): LimitsJudgement {
  const judgement: LimitsJudgement = { verdicts: [], notes: [], spends: [] };
  for (const rule of rates) {
    judgeLimit({ kind: "rate", cost: 1, ...rule }, "RATE_LIMITED", request, facts, judgement);
  }
  for (const rule of budgets) {
    judgeLimit({ kind: "budget", ...rule }, "BUDGET_SPENT", request, facts, judgement);
  }
  return judgement;
}

function judgeLimit(
  rule: BudgetRule & { readonly kind: "rate" | "budget" },
  reason: "RATE_LIMITED" | "BUDGET_SPENT",
  request: GateRequest,
  facts: Facts,
  into: LimitsJudgement,
): void {
  const { key, expiresAtMs } = toCounter(rule.kind, rule, request, facts.tenant.id, facts.nowMs);
  const used = Object.hasOwn(facts.counters, key) ? (facts.counters[key] ?? 0) : 0;
  // The question of a runtime's own dialog is about a call that was counted when it was asked for.
  const amount = request.phase === "permission" ? 0 : rule.cost;
  const said = { rule: rule.id, stage: "risk" } as const;
  into.notes.push({ kind: "limit", used, amount, limit: rule.limit, ...said });
  // Written so that a number which is none denies.
  if (!(used + amount <= rule.limit)) {
    into.verdicts.push({
      ...said,
      decision: "deny",
      reason,
      message: rule.message,
      priority: rule.priority,
    });
  } else if (amount > 0) {
    into.spends.push({ key, amount, limit: rule.limit, expiresAtMs });
  }
}
