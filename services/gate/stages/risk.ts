import type { RiskLevels, Verdict } from "../policy/policy.ts";
import type { Risk } from "../../../schemas/generated/types.ts";
import type { RuleNote } from "../ruling.ts";
import { judgeFacts } from "./facts-needed.ts";
import { judgeLimits } from "./limits.ts";
import { toToolRules } from "./policy-index.ts";
import { rulesThatHold, toWhenView } from "./rule-view.ts";
import type { Stage } from "./stage.ts";
import { toResult } from "./stage.ts";

const riskMax = 100;

/** Stage 4: the score first; then everything that may speak of it. */
export const riskStage: Stage = {
  name: "risk",
  judge(input) {
    const { request, facts, policy } = input;
    const rules = toToolRules(policy, request.tool);
    const verdicts: Verdict[] = [];
    const notes: RuleNote[] = [];
    const stage = "risk";

    let points = 0;
    const unscored = toWhenView(input, 0);
    for (const rule of rulesThatHold(rules.risk, unscored, stage, verdicts)) {
      points += rule.points;
      notes.push({ kind: "risk", rule: rule.id, stage, points: rule.points });
    }
    const riskScore = Math.max(0, Math.min(riskMax, points));

    const view = Object.assign({}, unscored, { riskScore });
    const { approval } = facts;
    const wasRefused = approval?.state === "refused" && facts.nowMs < approval.expiresAtMs;
    // Somebody's no to this plan is not asked about again.
    const asksUser = request.user_dialog === true && !wasRefused;
    for (const rule of rulesThatHold(rules.approvals, view, stage, verdicts)) {
      if (rule.by === "user" && asksUser) {
        // No verdict: what nothing else allows is not allowed by asking its own user.
        notes.push({ kind: "confirm", rule: rule.id, stage, message: rule.message });
        continue;
      }
      notes.push({ kind: "approval", rule: rule.id, stage, ttlMs: rule.ttlMs });
      verdicts.push({
        rule: rule.id,
        stage,
        decision: "require_approval",
        reason: "APPROVAL_REQUIRED",
        message: rule.message,
        priority: rule.priority,
      });
    }
    const known = judgeFacts(rulesThatHold(rules.facts, view, stage, verdicts), facts, request);
    const spent = judgeLimits(
      {
        rates: rulesThatHold(rules.rates, view, stage, verdicts),
        budgets: rulesThatHold(rules.budgets, view, stage, verdicts),
      },
      request,
      facts,
    );
    for (const rule of rulesThatHold(rules.constraints, view, stage, verdicts)) {
      notes.push({ kind: "constraints", rule: rule.id, stage, constraints: rule.constraints });
    }
    for (const rule of rulesThatHold(rules.labels, view, stage, verdicts)) {
      notes.push({ kind: "labels", rule: rule.id, stage, labels: rule.labels });
    }
    return toResult({
      verdicts: [...verdicts, ...known.verdicts, ...spent.verdicts],
      notes: [...notes, ...known.notes, ...spent.notes],
      spends: spent.spends,
      waits: known.waits,
      riskScore,
    });
  },
};

/** The level of a score. */
export function toRisk(score: number, levels: RiskLevels): Risk {
  if (score >= levels.critical) return "critical";
  if (score >= levels.high) return "high";
  return score >= levels.medium ? "medium" : "low";
}
