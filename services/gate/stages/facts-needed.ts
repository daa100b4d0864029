import type { GateRequest, Json } from "../../../schemas/gate.ts";
import { parseFactSet, toFactScopeId, toScopedName } from "../fact-sets.ts";
import type { DatedFact, Facts } from "../facts-of-call.ts";
import type { FactRule, Policy, Verdict } from "../policy/policy.ts";
import type { RuleNote } from "../ruling.ts";
import type { Wait } from "./stage.ts";

/** Names of the dated facts that a policy's rules ask for of a request, sorted: to be fetched before a decision. */
export function wantedFacts(policy: Policy, request: GateRequest | null): string[] {
  const names = new Set(policy.facts.map((rule) => rule.fact));
  for (const { fact, by } of policy.facts) {
    const scopeId = by === null || request === null ? null : toFactScopeId(by, request);
    if (scopeId !== null) names.add(toScopedName(fact, scopeId));
  }
  return [...names].sort();
}

/** What the rules that hold say of their facts. */
export interface FactsJudgement {
  readonly verdicts: Verdict[];
  readonly notes: RuleNote[];
  readonly waits: Wait[];
}

/**
 * Missing or old: deferred, and past the deadline denied. Fresh: denied if its value stands against the call. A fact that is
 * told by another scope than the rule names is misread, and denies.
 */
export function judgeFacts(rules: readonly FactRule[], facts: Facts, request: GateRequest): FactsJudgement {
  const judgement: FactsJudgement = { verdicts: [], notes: [], waits: [] };
  for (const rule of rules) {
    const note = { kind: "fact", rule: rule.id, stage: "risk", fact: rule.fact } as const;
    const said = { rule: rule.id, stage: "risk", priority: rule.priority } as const;
    const known = knownOf(facts, rule.fact);
    if (known !== undefined && isFresh(known, rule.maxAgeMs, facts.nowMs)) {
      const told = toTold(rule, known, facts, request);
      const isWarning = told.kind === "value" && rule.warnWhen.some((value) => value === told.value);
      judgement.notes.push(isWarning ? { ...note, warning: rule.message } : note);
      if (told.kind === "misread" || rule.denyWhen.some((value) => value === told.value)) {
        const message = told.kind === "misread" ? told.message : rule.message;
        judgement.verdicts.push({ ...said, decision: "deny", reason: "FACT_DENIES", message });
      }
      continue;
    }
    judgement.notes.push(note);
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

function knownOf(facts: Facts, name: string): DatedFact | undefined {
  return Object.hasOwn(facts.dated, name) ? facts.dated[name] : undefined;
}

/** The value that counts for a request. Rows of scopes are written with the fact itself, so they are as fresh as it is. */
function toTold(
  rule: FactRule,
  known: DatedFact,
  facts: Facts,
  request: GateRequest,
): { readonly kind: "value"; readonly value: Json } | { readonly kind: "misread"; readonly message: string } {
  const set = parseFactSet(known.value);
  if (set === null) return { kind: "value", value: known.value };
  if (set.by !== rule.by) {
    const message = `the fact \`${rule.fact}\` is told by ${set.by}; its rule has to say \`by: ${set.by}\``;
    return { kind: "misread", message };
  }
  const scopeId = toFactScopeId(set.by, request);
  const scoped = scopeId === null ? undefined : knownOf(facts, toScopedName(rule.fact, scopeId));
  return { kind: "value", value: scoped?.value ?? set.otherwise };
}
