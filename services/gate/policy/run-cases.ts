import type { DecisionName, GateRequest, ReasonCode } from "../../../schemas/gate.ts";
import type { Facts } from "../facts-of-call.ts";
import type { PolicyCase } from "./parse-cases.ts";
import type { Policy } from "./policy.ts";

/** What a judge says of a case. */
export interface CaseAnswer {
  readonly decision: DecisionName;
  readonly reason: ReasonCode;
  readonly matchedRules: readonly string[];
}
/** Decides with one bundle; handed in, so that a bundle's own cases run against the decision that is in use. */
export type Judge = (request: GateRequest, facts: Facts, policy: Policy) => CaseAnswer;

/** A case that the bundle does not answer as it says. `name` null: the bundle as a whole is meant. */
export interface CaseFailure {
  readonly file: string;
  readonly line: number;
  readonly name: string | null;
  readonly expected: string;
  readonly found: string;
}

/** Why the gate denies whatever a bundle says: a deny for one of these is no proof that the bundle denies. */
const gateReasons: ReadonlySet<ReasonCode> = new Set([
  ...(["TOOL_UNKNOWN", "INPUT_UNREADABLE", "SCHEMA_MISMATCH"] as const),
  ...(["TENANT_FROZEN", "PLAN_REVOKED", "RULE_FAILED"] as const),
]);

/**
 * Runs a bundle's own cases. A bundle of which no case proves that it denies something fails too: one that permits all
 * would pass with a case of an unknown tool.
 */
export function runCases(policy: Policy, cases: readonly PolicyCase[], judge: Judge): readonly CaseFailure[] {
  const failures: CaseFailure[] = [];
  let hasDenied = false;
  for (const one of cases) {
    const answer = runCase(policy, one, judge);
    const found = toDifference(one, answer);
    if (found !== null) {
      const { file, line, name } = one;
      failures.push({ file, line, name, expected: toExpectation(one), found });
    } else if (typeof answer !== "string") {
      hasDenied ||= answer.decision === "deny" && !gateReasons.has(answer.reason);
    }
  }
  if (!hasDenied) {
    failures.push({
      file: "cases",
      line: 0,
      name: null,
      expected: "a case that expects deny, and passes by what the bundle says",
      found: "none: a bundle that can deny nothing is refused",
    });
  }
  return failures;
}

/** The answer; a text: why there is none. */
function runCase(policy: Policy, one: PolicyCase, judge: Judge): CaseAnswer | string {
  try {
    return judge(one.request, one.facts, policy);
  } catch (error) {
    return `no decision: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** What was found instead; null: as expected. */
function toDifference({ expect }: PolicyCase, answer: CaseAnswer | string): string | null {
  if (typeof answer === "string") return answer;
  const { decision, reason, matchedRules } = answer;
  const isRight =
    decision === expect.decision &&
    (expect.reason === null || reason === expect.reason) &&
    expect.rules.every((rule) => matchedRules.includes(rule));
  return isRight ? null : `${decision} ${reason}${toRuleList(matchedRules)}`;
}

function toExpectation({ expect }: PolicyCase): string {
  const reason = expect.reason === null ? "" : ` ${expect.reason}`;
  return `${expect.decision}${reason}${toRuleList(expect.rules)}`;
}

function toRuleList(rules: readonly string[]): string {
  return rules.length === 0 ? "" : ` by ${rules.join(", ")}`;
}
