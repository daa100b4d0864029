import type { HoldFact } from "./facts-of-call.ts";
import { toSessionKey } from "./call-keys.ts";

/** What the breaker or a person holds back, as it is stored. */
export interface Hold extends HoldFact {
  /** Null: every tenant. */
  readonly tenantId: string | null;
  /** When it ends by itself, UTC milliseconds; null: a person ends it. */
  readonly untilMs: number | null;
}

/** What of a call holds are found by. */
export interface HeldPlace {
  readonly tenantId: string;
  readonly runtime: string;
  readonly sessionId: string;
  readonly agentId: string | null;
  readonly userId: string;
  readonly tool: string;
  readonly correlationId: string;
  /** Keys of the session and of all above it: what holds a session holds its children, and theirs. */
  readonly sessionKeys: readonly string[];
}

/** An agent of a session: what the breaker names it by. */
export function toAgentScope(runtime: string, sessionId: string, agentId: string | null): string {
  return `${runtime}/${sessionId}/${agentId ?? ""}`;
}

/** The holds that a call falls under at a time, as facts; sorted, so that a stored decision is the same each time. */
export function findHolds(holds: readonly Hold[], place: HeldPlace, nowMs: number): HoldFact[] {
  return holds
    .filter((one) => (one.untilMs === null || one.untilMs > nowMs) && isUnder(one, place))
    .map(({ id, source, mode, scope, scopeId, reason }) => ({ id, source, mode, scope, scopeId, reason }))
    .sort((left, right) => (left.id < right.id ? -1 : 1));
}

/** Whether everything of a tenant may be frozen for somebody: for answers that are given without looking at the call. */
export function mayBeFrozen(holds: readonly Hold[], nowMs: number): boolean {
  return holds.some((one) => one.mode === "frozen" && (one.untilMs === null || one.untilMs > nowMs));
}

function isUnder({ scope, scopeId, tenantId }: Hold, place: HeldPlace): boolean {
  if (tenantId !== null && tenantId !== place.tenantId) return false;
  switch (scope) {
    case "all":
    case "tenant":
      return true;
    case "correlation":
      return scopeId === place.correlationId;
    case "session":
      return place.sessionKeys.includes(toSessionKey(place.tenantId, place.runtime, scopeId));
    case "agent":
      return (
        scopeId === toAgentScope(place.runtime, place.sessionId, place.agentId) || scopeId === place.agentId
      );
    case "user":
      return scopeId === place.userId;
    case "tool":
      return scopeId === place.tool;
    default:
      // A scope of a later version: held rather than missed.
      return true;
  }
}
