import { hash } from "node:crypto";
import type { GateRequest } from "../../schemas/gate.ts";
import type { BudgetRule, CountScope, Policy, RateRule } from "./policy/policy.ts";
import { toToolRules } from "./stages/policy-index.ts";

/** What a counter counts. */
export type CounterKind = "rate" | "budget";

/** A counter of one rule, one scope and one window. */
export interface Counter {
  readonly key: string;
  /** When it can be forgotten, UTC milliseconds; null: never. */
  readonly expiresAtMs: number | null;
}

/** A scope's id that can stand in a key as it is. */
const plainId = /^[A-Za-z0-9._:@/-]{1,120}$/;

/**
 * The key under which a scope's spending in a window is counted; a scope's id that is long or has other characters
 * stands there as its digest. `windowStartMs` null: for ever.
 */
export function toCounterKey(
  kind: CounterKind,
  ruleId: string,
  scope: CountScope,
  scopeId: string,
  windowStartMs: number | null,
): string {
  const id = plainId.test(scopeId) ? scopeId : `#${hash("sha256", scopeId, "hex")}`;
  return `${kind}|${ruleId}|${scope}|${id}|${windowStartMs === null ? "all" : String(windowStartMs)}`;
}

/**
 * The counter of a rule that a call spends from at a time. Windows lie on the wall clock, so that a process that starts
 * anew, and a clock that jumps back, find what was spent.
 */
export function toCounter(
  kind: CounterKind,
  rule: Pick<RateRule | BudgetRule, "id" | "scope" | "windowMs">,
  request: GateRequest,
  tenantId: string,
  nowMs: number,
): Counter {
  const scopeId = toScopeId(rule.scope, request, tenantId);
  if (rule.windowMs === null) {
    return { key: toCounterKey(kind, rule.id, rule.scope, scopeId, null), expiresAtMs: null };
  }
  const startMs = Math.floor(nowMs / rule.windowMs) * rule.windowMs;
  return {
    key: toCounterKey(kind, rule.id, rule.scope, scopeId, startMs),
    // A window longer than it counts: a clock that jumps back by less gets no fresh one.
    expiresAtMs: startMs + 2 * rule.windowMs,
  };
}

/** Keys of all counters that a request could spend from or be held up by, sorted: to be fetched before a decision. */
export function wantedCounters(
  request: GateRequest,
  tenantId: string,
  policy: Policy,
  nowMs: number,
): string[] {
  const { rates, budgets } = toToolRules(policy, request.tool);
  const keys = new Set<string>();
  for (const rule of rates) keys.add(toCounter("rate", rule, request, tenantId, nowMs).key);
  for (const rule of budgets) keys.add(toCounter("budget", rule, request, tenantId, nowMs).key);
  return [...keys].sort();
}

/** Whose calls are counted together. */
function toScopeId(scope: CountScope, request: GateRequest, tenantId: string): string {
  switch (scope) {
    case "tenant":
      return tenantId;
    case "session":
      return joinParts(tenantId, request.runtime, request.session_id);
    case "agent":
      return joinParts(tenantId, request.runtime, request.session_id, request.agent_id ?? "");
    case "user":
      // Calls that name no user are counted as one user's.
      return joinParts(tenantId, request.user_id ?? "");
    case "tool":
      return joinParts(tenantId, request.tool);
  }
}

/** No two lists give one id: what could hold the separator is joined as JSON. */
function joinParts(...parts: readonly string[]): string {
  return parts.every((part) => plainPart.test(part)) ? parts.join("/") : JSON.stringify(parts);
}
const plainPart = /^[A-Za-z0-9._:@-]*$/;
