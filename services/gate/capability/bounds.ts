import type { CapabilityState } from "./capability-state.ts";
import type { CapabilityClaims } from "./claims.ts";
import { toResourceDigest, toShownResource } from "./claims.ts";

/** Why a right does not cover what is to be done; the first that holds, in this order. Never renamed. */
export const boundFaults = {
  token: "the token is none that this gate signed, or does not say what its row says",
  tenant: "the right is another tenant's",
  unknown: "there is no such right",
  tool: "the right is for another tool",
  plan_digest: "the right is for another plan",
  resource: "the right is for another resource",
  session: "the right is another session's",
  revoked: "the right was taken back",
  plan_revoked: "the plan was revoked",
  frozen: "the tenant is frozen",
  incident: "an incident froze what the right belongs to",
  read_only: "the breaker put what the right belongs to to read-only",
  expired: "the right has come to its end",
  idempotency_key: "the key was used for something else",
  spent: "the right has not as many calls left",
  policy_revision: "the policy of now does not allow the plan",
} as const;
export type BoundFault = keyof typeof boundFaults;

/** What a resource is about to do. Each part that is given is compared. */
export interface AskedUse {
  readonly planDigest: string;
  readonly tool?: string | undefined;
  /** As the plan names it; null: the plan names none. */
  readonly resource?: string | null | undefined;
  readonly sessionId?: string | undefined;
}

/**
 * The first of the right's bounds that is not kept, its calls left aside; null: all are. `claims` is null when the right
 * was named by its id alone: then a resource is compared as the row shows it, and the plan's digest holds the rest.
 */
export function firstDifference(
  state: CapabilityState,
  claims: CapabilityClaims | null,
  asked: AskedUse,
): BoundFault | null {
  if (claims !== null && !isSameRight(state, claims)) return "token";
  if (asked.tool !== undefined && asked.tool !== state.tool) return "tool";
  if (asked.planDigest !== state.planDigest) return "plan_digest";
  if (asked.resource !== undefined && !isSameResource(asked.resource, state, claims)) return "resource";
  if (asked.sessionId !== undefined && asked.sessionId !== state.sessionId) return "session";
  if (state.isRevoked) return "revoked";
  if (state.isPlanRevoked) return "plan_revoked";
  if (state.isTenantFrozen) return "frozen";
  if (state.heldBy !== null) return state.heldBy === "incident" ? "incident" : "read_only";
  if (state.isExpired) return "expired";
  return null;
}

/** The row is the right; a token that says anything else of it is not believed, whoever signed it. */
function isSameRight(state: CapabilityState, claims: CapabilityClaims): boolean {
  return (
    claims.jti === state.capabilityId &&
    claims.tenant === state.tenantId &&
    claims.runtime === state.runtime &&
    claims.session === state.sessionId &&
    claims.tool === state.tool &&
    claims.plan_digest === state.planDigest &&
    claims.max_calls === state.maxCalls &&
    claims.policy_revision === state.policyRevision &&
    claims.exp === Math.floor(state.expiresAtMs / 1000)
  );
}

function isSameResource(
  asked: string | null,
  state: CapabilityState,
  claims: CapabilityClaims | null,
): boolean {
  if (asked === null || state.resource === null) return asked === state.resource;
  if (claims !== null) return claims.resource_digest === toResourceDigest(asked);
  return toShownResource(asked) === state.resource;
}
