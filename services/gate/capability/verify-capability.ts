import type { AskedUse, BoundFault } from "./bounds.ts";
import { firstDifference } from "./bounds.ts";
import type { CapabilityDeps } from "./capability-deps.ts";
import type { CapabilityState } from "./capability-state.ts";
import { loadCapability } from "./capability-state.ts";
import type { CapabilityClaims } from "./claims.ts";

/** A right as a resource names it: by its signed form, or by its id alone. */
export type NamedRight = { readonly token: string } | { readonly capabilityId: string };

/** A right that may be used, or why it may not. */
export type Found =
  | { readonly kind: "good"; readonly state: CapabilityState; readonly claims: CapabilityClaims | null }
  | { readonly kind: "bad"; readonly fault: BoundFault };

/** Looks a right up and compares its bounds, its calls left aside. The row is read anew each time: nothing is remembered. */
export async function findRight(
  deps: CapabilityDeps,
  tenantId: string,
  named: NamedRight,
  asked: AskedUse,
): Promise<Found> {
  const claims = "token" in named ? deps.signer.read(named.token) : null;
  let capabilityId: string;
  if ("token" in named) {
    if (claims === null) return { kind: "bad", fault: "token" };
    if (claims.tenant !== tenantId) return { kind: "bad", fault: "tenant" };
    capabilityId = claims.jti;
  } else capabilityId = named.capabilityId;
  // Another tenant's id is answered like one that there never was.
  const state = await loadCapability(deps.database, tenantId, capabilityId);
  if (state === null) return { kind: "bad", fault: "unknown" };
  const fault = firstDifference(state, claims, asked);
  return fault === null ? { kind: "good", state, claims } : { kind: "bad", fault };
}

/** Whether the right was issued under another revision than the one of now, which does not allow its plan. */
export async function isDeniedNow(deps: CapabilityDeps, state: CapabilityState): Promise<boolean> {
  if (deps.policy.revision() === state.policyRevision) return false;
  const { decisionId, tenantId } = state;
  return !(await deps.policy.isStillAllowed({ decisionId, tenantId }));
}

/** The whole check of a right that is about to be used once more, without using it. */
export async function verifyCapability(
  deps: CapabilityDeps,
  tenantId: string,
  named: NamedRight,
  asked: AskedUse,
): Promise<Found> {
  const found = await findRight(deps, tenantId, named, asked);
  if (found.kind === "bad") return found;
  if (found.state.callsUsed >= found.state.maxCalls) return { kind: "bad", fault: "spent" };
  if (await isDeniedNow(deps, found.state)) return { kind: "bad", fault: "policy_revision" };
  return found;
}
