import type { Envelope } from "../../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../../schemas/envelope.ts";
import { derivedUuid } from "../../platform/ids.ts";
import type { Policy } from "../policy/policy.ts";
import type { ActivationRow } from "./revision-rows.ts";

/** The tenant of the fabric's own records: a policy is one for all tenants. */
export const fabricTenant = "fabric";

/** The runtime of what the gate does by itself. */
export const fabricRuntime = {
  kind: "fabric",
  adapter_version: "1",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};

/** `fabric.policy.activated`. */
export function toActivationEvent(row: ActivationRow, policy: Policy, environment: string): Envelope {
  return toEnvelope(
    draft("fabric.policy.activated", {
      bundle: policy.name,
      revision: policy.revision,
      digest: policy.digest,
      previous_revision: row.previousRevision,
      activated_by: row.activatedBy,
    }),
    {
      eventId: `evt_${derivedUuid(`policy/${environment}/${row.activationId.toString()}/${policy.revision}/${String(row.activatedAtMs)}`)}`,
      recordedAtMs: row.activatedAtMs,
      tenantId: fabricTenant,
      environment,
      runtime: fabricRuntime,
      correlationId: `cor_${derivedUuid(`policies/${environment}`)}`,
      origin: row.kind === "bootstrap" ? "processor:gate" : "human",
      userId: row.kind === "bootstrap" ? null : row.activatedBy,
    },
  );
}
