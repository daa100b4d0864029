import { toUuid } from "../platform/ids.ts";
import type { Statement } from "../platform/postgres.ts";
import { plainArray } from "./array-parameter.ts";

/** The statement that ends rights before their time; one that ended before keeps its time. */
export function revokeStatement(capabilityIds: readonly string[], nowMs: number): Statement {
  return {
    name: "gate-revoke",
    text: "UPDATE gate.capabilities SET revoked_at = $2 WHERE capability_id = ANY ($1::uuid[]) AND revoked_at IS NULL",
    values: [plainArray(capabilityIds.map(toUuid)), new Date(nowMs).toISOString()],
  };
}
