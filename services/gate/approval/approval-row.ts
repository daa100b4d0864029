import type { Constraints, JsonObject } from "../../../schemas/gate.ts";
import { toUuid } from "../../platform/ids.ts";
import type { Tx } from "../../platform/postgres.ts";
import type { ApprovalFact } from "../facts-of-call.ts";

/** An approval as its row says, by the server's clock. */
export interface ApprovalRow {
  readonly approvalId: string;
  readonly tenantId: string;
  readonly sessionKey: string;
  /** The runtime's own id. */
  readonly sessionId: string;
  readonly agentId: string;
  readonly intentDigest: string;
  readonly planDigest: string;
  readonly decisionId: string;
  readonly correlationId: string;
  /** The event of the call that it was asked for. */
  readonly requestedEventId: string;
  readonly runtime: string;
  readonly tool: string;
  readonly effectClass: string;
  readonly riskScore: number;
  readonly risk: string;
  readonly requester: string;
  /** Secrets masked. */
  readonly plan: JsonObject;
  readonly planSealed: Buffer;
  readonly constraints: Constraints;
  readonly matchedRules: readonly string[];
  readonly message: string;
  readonly policyRevision: string;
  /** An open one whose time is up is `expired`, whether or not it was swept. */
  readonly state: ApprovalFact["state"];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly decidedAt: Date | null;
  readonly decidedBy: string | null;
  readonly note: string | null;
  readonly consumedByDecision: string | null;
}

interface Columns {
  readonly approval_id: string;
  readonly tenant_id: string;
  readonly session_key: string;
  readonly session_id: string;
  readonly agent_id: string;
  readonly intent_digest: string;
  readonly plan_digest: string;
  readonly decision_id: string;
  readonly correlation_id: string;
  readonly requested_event_id: string;
  readonly runtime: string;
  readonly tool: string;
  readonly effect_class: string;
  readonly risk_score: number;
  readonly risk: string;
  readonly requester: string;
  readonly plan: JsonObject;
  readonly plan_sealed: Buffer;
  readonly constraints: Constraints;
  readonly matched_rules: string[];
  readonly message: string;
  readonly policy_revision: string;
  readonly state_now: ApprovalFact["state"];
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly decided_at: Date | null;
  readonly decided_by: string | null;
  readonly note: string | null;
  readonly consumed_by_decision: string | null;
}

const stateText = `CASE WHEN a.state IN ('pending', 'approved') AND a.expires_at <= clock_timestamp() THEN 'expired'
    ELSE a.state END`;

/** Columns and joins of an approval; `a` is its row. */
export const approvalColumns = `a.approval_id, a.tenant_id, a.session_key, s.session_id, a.agent_id, a.intent_digest,
  a.plan_digest, a.decision_id, a.correlation_id, d.requested_event_id, a.runtime, a.tool, a.effect_class, a.risk_score,
  a.risk, a.requester, a.plan, a.plan_sealed, a.constraints, a.matched_rules, a.message, a.policy_revision,
  ${stateText} AS state_now, a.created_at, a.expires_at, a.decided_at, a.decided_by, a.note, a.consumed_by_decision`;
export const approvalJoins = `JOIN gate.sessions AS s ON s.session_key = a.session_key
  JOIN gate.decisions AS d ON d.decision_id = a.decision_id`;

/** Makes an approval of its columns. */
export function toApprovalRow(row: Record<string, unknown>): ApprovalRow {
  const one = row as unknown as Columns;
  return {
    approvalId: `apr_${one.approval_id}`,
    tenantId: one.tenant_id,
    sessionKey: one.session_key,
    sessionId: one.session_id,
    agentId: one.agent_id,
    intentDigest: one.intent_digest,
    planDigest: one.plan_digest,
    decisionId: `dec_${one.decision_id}`,
    correlationId: `cor_${one.correlation_id}`,
    requestedEventId: `evt_${one.requested_event_id}`,
    runtime: one.runtime,
    tool: one.tool,
    effectClass: one.effect_class,
    riskScore: one.risk_score,
    risk: one.risk,
    requester: one.requester,
    plan: one.plan,
    planSealed: one.plan_sealed,
    constraints: one.constraints,
    matchedRules: one.matched_rules,
    message: one.message,
    policyRevision: one.policy_revision,
    state: one.state_now,
    createdAt: one.created_at,
    expiresAt: one.expires_at,
    decidedAt: one.decided_at,
    decidedBy: one.decided_by,
    note: one.note,
    consumedByDecision: one.consumed_by_decision === null ? null : `dec_${one.consumed_by_decision}`,
  };
}

/** Form of an approval's id. */
export const approvalIdPattern = /^apr_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** An approval of this tenant; null: it has none of this id. `isForUpdate` keeps it as it is to the end of the transaction. */
export async function loadApproval(
  tx: Tx,
  tenantId: string,
  approvalId: string,
  { isForUpdate = false }: { readonly isForUpdate?: boolean } = {},
): Promise<ApprovalRow | null> {
  if (!approvalIdPattern.test(approvalId)) return null;
  const found = await tx.query({
    name: isForUpdate ? "approval-hold" : "approval-load",
    text: `SELECT ${approvalColumns} FROM gate.approvals AS a ${approvalJoins}
      WHERE a.tenant_id = $1 AND a.approval_id = $2::uuid${isForUpdate ? " FOR UPDATE OF a" : ""}`,
    values: [tenantId, toUuid(approvalId)],
  });
  const row = found.rows[0];
  return row === undefined ? null : toApprovalRow(row);
}

/** A tenant's approvals, the newest first. */
export async function listApprovals(
  tx: Tx,
  tenantId: string,
  wanted: {
    readonly state: ApprovalFact["state"] | null;
    readonly sessionId: string | null;
    readonly limit: number;
  },
): Promise<ApprovalRow[]> {
  const found = await tx.query({
    name: "approval-list",
    text: `SELECT ${approvalColumns} FROM gate.approvals AS a ${approvalJoins}
      WHERE a.tenant_id = $1 AND ($2::text IS NULL OR ${stateText} = $2) AND ($3::text IS NULL OR s.session_id = $3)
      ORDER BY a.created_at DESC, a.approval_id DESC LIMIT $4`,
    values: [tenantId, wanted.state, wanted.sessionId, wanted.limit],
  });
  return found.rows.map(toApprovalRow);
}
