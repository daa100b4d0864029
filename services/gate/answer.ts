import type { GateAnswer, GateRequest, ReasonCode } from "../../schemas/gate.ts";
import { reasonCodes } from "../../schemas/gate.ts";
import type { Ruling } from "./ruling.ts";
import { frozenMessage } from "./stages/static-deny.ts";

/** How long a right to carry out one plan lasts: a call starts within seconds, a person's prompt may sit in between. */
export const capabilityTtlMs = 300_000;

/** Ids and time of an answer, handed in. */
export interface AnswerIds {
  readonly decisionId: string;
  readonly capabilityId: string;
  /** For an approval that is asked for. */
  readonly approvalId: string;
  readonly correlationId: string;
  readonly nowMs: number;
  readonly policyRevision: string;
}

/** The answer to a ruling. A question of the runtime's own dialog gets no second capability. */
export function toAnswer(ruling: Ruling, request: GateRequest, ids: AnswerIds): GateAnswer {
  const isIssued = ruling.needsCapability && request.phase === "before_tool";
  const approval = toTicket(ruling, ids);
  return {
    decision: ruling.decision,
    decision_id: ids.decisionId,
    reason_code: ruling.reason,
    message:
      approval === null
        ? ruling.message
        : `${ruling.message}; approval ${approval.id} is open until ${approval.expires_at}: a person agrees with \`fabric approvals approve ${approval.id}\`; ask again with the same input once it is approved`,
    policy_revision: ids.policyRevision,
    plan_digest: ruling.planDigest,
    correlation_id: ids.correlationId,
    ...(isIssued
      ? {
          capability: {
            id: ids.capabilityId,
            // The row is the right; its signed form is made for who asks for it.
            token: null,
            expires_at: new Date(ids.nowMs + capabilityTtlMs).toISOString(),
          },
        }
      : {}),
    ...(approval === null ? {} : { approval }),
    ...(ruling.waitsFor === null
      ? {}
      : {
          defer: {
            facts: [...ruling.waitsFor.facts],
            until: new Date(ruling.waitsFor.untilMs).toISOString(),
          },
        }),
    risk: { score: ruling.riskScore, level: ruling.risk },
    constraints: ruling.constraints,
    ...(ruling.modifiedInput === null ? {} : { modified_input: { ...ruling.modifiedInput } }),
    ...(ruling.confirm === null ? {} : { confirm: ruling.confirm }),
    matched_rules: [...ruling.matchedRules],
    labels: [...ruling.labels],
    repeated: false,
  };
}

/** The approval that a call waits for. */
function toTicket(ruling: Ruling, ids: AnswerIds): NonNullable<GateAnswer["approval"]> | null {
  if (ruling.decision !== "require_approval") return null;
  switch (ruling.approval.kind) {
    case "request":
      return {
        id: ids.approvalId,
        expires_at: new Date(ids.nowMs + ruling.approval.ttlMs).toISOString(),
      };
    case "await":
      return {
        id: ruling.approval.approvalId,
        expires_at: new Date(ruling.approval.expiresAtMs).toISOString(),
      };
    case "none":
    case "consume":
      return null;
  }
}

/** The stored answer to the same call again. A freeze since then wins over an allow of before. */
export function toRepeatedAnswer(stored: GateAnswer, tenantState: "active" | "frozen"): GateAnswer {
  const isAllowed = stored.decision === "allow" || stored.decision === "modify";
  if (!isAllowed || tenantState === "active") return { ...stored, repeated: true };
  const { capability: _capability, modified_input: _input, confirm: _confirm, ...rest } = stored;
  return { ...rest, decision: "deny", reason_code: "TENANT_FROZEN", message: frozenMessage, repeated: true };
}

/** A refusal that could not be recorded. Nothing was allowed, and no row says that it was. */
export function toUnrecordedRefusal(
  reason: ReasonCode,
  ids: Pick<AnswerIds, "decisionId" | "correlationId" | "policyRevision">,
): GateAnswer {
  return {
    decision: "deny",
    decision_id: ids.decisionId,
    reason_code: reason,
    message: `${reasonCodes[reason]}; nothing was allowed, try again`,
    policy_revision: ids.policyRevision,
    plan_digest: null,
    correlation_id: ids.correlationId,
    constraints: {},
    matched_rules: [],
    labels: [],
    repeated: false,
  };
}
