import type { Draft, Envelope } from "../../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../../schemas/envelope.ts";
import type { Policy, Risk, Subject } from "../../../schemas/generated/types.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import type { ApprovalRow } from "./approval-row.ts";

/** Id, time and place of an event, handed in. */
export interface EventPlace {
  readonly eventId: string;
  readonly nowMs: number;
  readonly environment: string;
}

const resourceMaxChars = 512;

/** `agent.approval.granted` or `agent.approval.refused`: the actor is the approver. */
export function toDecidedEvent(
  row: ApprovalRow,
  decided: { readonly isApproved: boolean; readonly by: string; readonly note: string | null },
  place: EventPlace,
): Envelope {
  const one = draft(
    decided.isApproved ? "agent.approval.granted" : "agent.approval.refused",
    {
      decision_id: row.decisionId,
      requester_id: row.requester,
      note: decided.note,
      decided_at: place.nowMs,
    },
    ofApproval(row),
  );
  return toFact(one, row, place, { userId: decided.by, origin: "human" });
}

/** `agent.approval.expired`. */
export function toExpiredEvent(row: ApprovalRow, place: EventPlace): Envelope {
  const one = draft(
    "agent.approval.expired",
    { decision_id: row.decisionId, expired_at: row.expiresAt.getTime() },
    ofApproval(row),
  );
  return toFact(one, row, place, { userId: null, origin: "schedule" });
}

function ofApproval(row: ApprovalRow) {
  const policy: Policy = {
    revision: row.policyRevision,
    risk: row.risk as Risk,
    decision: null,
    reason_code: null,
    matched_rules: [...row.matchedRules],
  };
  const { action, resource } = row.plan;
  const subject: Subject = {
    tool: row.tool,
    action: typeof action === "string" ? action : null,
    resource_ref: typeof resource === "string" ? toTextPreview(resource, resourceMaxChars) : null,
    data_class: "unknown",
  };
  return {
    policy,
    subject,
    plan_digest: row.planDigest,
    approval_id: row.approvalId,
    ...(row.agentId === "" ? {} : { agent_id: row.agentId }),
    execution: { session_id: row.sessionId },
  };
}

function toFact(
  one: Draft,
  row: ApprovalRow,
  place: EventPlace,
  who: { readonly userId: string | null; readonly origin: string },
): Envelope {
  return toEnvelope(one, {
    eventId: place.eventId,
    recordedAtMs: place.nowMs,
    tenantId: row.tenantId,
    environment: place.environment,
    runtime: {
      kind: row.runtime,
      adapter_version: "gate",
      runtime_version: null,
      permission_mode: null,
      sandbox: null,
    },
    correlationId: row.correlationId,
    causationId: row.requestedEventId,
    origin: who.origin,
    userId: who.userId,
  });
}
