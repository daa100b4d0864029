import { hash } from "node:crypto";
import { z } from "zod";
import type { Constraints } from "../../../schemas/gate.ts";
import { constraintsSchema } from "../../../schemas/gate.ts";
import { maskText } from "../../platform/mask.ts";
import { toStorableText } from "../../platform/masked-preview.ts";

/** Who issues rights, and what they are for: no other token of the fabric carries either. */
export const capabilityIssuer = "fabric:gate";
export const capabilityAudience = "fabric-capability";

/** Form of an id that the gate gave a right. */
export const capabilityIdPattern = /^cap_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** A digest of a plan or a resource. */
export const digestPattern = /^sha256:[0-9a-f]{64}$/;

/** What the signed form of a right says. Times are seconds since 1970, as JWT has it. */
export const claimsSchema = z.strictObject({
  iss: z.literal(capabilityIssuer),
  aud: z.literal(capabilityAudience),
  /** The capability's id: with it the gate is asked whether the right still holds. */
  jti: z.string().regex(capabilityIdPattern),
  tenant: z.string(),
  runtime: z.string(),
  session: z.string(),
  tool: z.string(),
  /** SHA-256 over the resource as the plan names it; null: the plan names none. The text itself may hold a secret. */
  resource_digest: z.string().regex(digestPattern).nullable(),
  plan_digest: z.string().regex(digestPattern),
  constraints: constraintsSchema,
  max_calls: z.int().positive(),
  policy_revision: z.string(),
  iat: z.int().positive(),
  exp: z.int().positive(),
});
export type CapabilityClaims = z.output<typeof claimsSchema>;

/** What a right is made of; times are UTC milliseconds. */
export interface NewCapability {
  readonly capabilityId: string;
  readonly tenantId: string;
  readonly runtime: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly resource: string | null;
  readonly planDigest: string;
  readonly constraints: Constraints;
  readonly maxCalls: number;
  readonly policyRevision: string;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

/** The claims of a right. The same right has the same claims, and so the same token, whenever they are made. */
export function toClaims(one: NewCapability): CapabilityClaims {
  return {
    iss: capabilityIssuer,
    aud: capabilityAudience,
    jti: one.capabilityId,
    tenant: one.tenantId,
    runtime: one.runtime,
    // As the session's row keeps it.
    session: toStorableText(one.sessionId),
    tool: one.tool,
    resource_digest: one.resource === null ? null : toResourceDigest(one.resource),
    plan_digest: one.planDigest,
    constraints: one.constraints,
    max_calls: one.maxCalls,
    policy_revision: one.policyRevision,
    iat: Math.floor(one.issuedAtMs / 1000),
    // Rounded down: the token ends no later than the row.
    exp: Math.floor(one.expiresAtMs / 1000),
  };
}

/** How a token names a resource. */
export function toResourceDigest(resource: string): string {
  return `sha256:${hash("sha256", resource, "hex")}`;
}

/** Longest resource that a right's row shows. */
const resourceMaxChars = 1_024;

/** How a right's row shows a resource: secrets masked, and cut. Equal resources are shown alike. */
export function toShownResource(resource: string): string {
  return toStorableText(maskText(resource)).slice(0, resourceMaxChars);
}
