import type { StageName, Verdict, When } from "../policy/policy.ts";
import type { WhenView } from "../policy/when.ts";
import { whenHolds } from "../policy/when.ts";
import type { StageInput } from "./stage.ts";
import { toFailure } from "./stage.ts";

/** What the `when` of YAML rules sees, with a score of `riskScore`. */
export function toWhenView({ request, classified, facts }: StageInput, riskScore: number): WhenView {
  return {
    tool: request.tool,
    effect: classified.effect,
    runtime: request.runtime,
    environment: facts.environment,
    signals: new Set(classified.signals),
    labels: new Set(facts.session.labels),
    riskScore,
  };
}

/** The rules that hold. One that cannot tell is a deny that names it, added to `failures`. */
export function rulesThatHold<R extends { readonly id: string; readonly when: When }>(
  rules: readonly R[],
  view: WhenView,
  stage: StageName,
  failures: Verdict[],
): R[] {
  return rules.filter((rule) => {
    try {
      return whenHolds(rule.when, view);
    } catch (error) {
      failures.push(toFailure(stage, rule.id, error));
      return false;
    }
  });
}
