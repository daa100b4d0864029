import { z } from "zod";
import { Fault } from "../../../schemas/faults.ts";
import type { JsonObject } from "../../../schemas/gate.ts";
import type { AccessTable, HttpRequest, HttpServer, ReceivedBody } from "../../platform/http.ts";
import { bodyOf, callerOf, parseInput } from "../../platform/route-input.ts";
import type { TenantKeys } from "../../platform/vault-seal.ts";
import { openInline } from "../../platform/vault-seal.ts";
import { planPlace } from "../call-change.ts";
import type { DecideAgainDeps } from "../decide-again.ts";
import { decideAgain } from "../decide-again.ts";
import type { ApprovalRow } from "./approval-row.ts";
import { listApprovals, loadApproval } from "./approval-row.ts";
import type { ApprovalDeps } from "./decide-approval.ts";
import { decideApproval } from "./decide-approval.ts";

/** Who may call what; part of the gate's access table. A plan is shown exactly only to who may agree to it. */
export const approvalAccess = {
  "GET /v1/approvals": ["approver", "incident", "auditor", "admin"],
  "GET /v1/approvals/:id": ["approver"],
  "POST /v1/approvals/:id/approve": ["approver"],
  "POST /v1/approvals/:id/refuse": ["approver"],
} as const satisfies AccessTable;

export interface ApprovalRouteDeps extends ApprovalDeps, DecideAgainDeps {
  readonly keys: TenantKeys;
}

const states = ["pending", "approved", "refused", "expired", "consumed", "voided"] as const;
const listSchema = z.strictObject({
  state: z.enum(states).optional(),
  session: z.string().min(1).max(256).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(50),
});
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, "a digest has the form `sha256:<hex>`");
const note = z.string().max(2_000).optional();
const approveSchema = z.strictObject({ plan_digest: digest, note });
const refuseSchema = z.strictObject({ plan_digest: digest.optional(), note });

/** Adds the routes of approvals; give `approvalAccess` to the server. */
export function registerApprovalRoutes(app: HttpServer, deps: ApprovalRouteDeps): void {
  app.get("/v1/approvals", async (request, reply) => {
    const wanted = parseInput(listSchema, request.query);
    const rows = await listApprovals(deps.database, callerOf(request).tenantId, {
      state: wanted.state ?? null,
      sessionId: wanted.session ?? null,
      limit: wanted.limit,
    });
    return reply.send({ approvals: rows.map((row) => ({ ...toShown(row), plan: row.plan })) });
  });

  app.get<{ Params: { id: string } }>("/v1/approvals/:id", async (request, reply) => {
    const row = await loadApproval(deps.database, callerOf(request).tenantId, request.params.id);
    if (row === null) throw new Fault("APPROVAL_UNKNOWN");
    const sealed = await openInline(deps.keys, row.tenantId, planPlace(row.approvalId), row.planSealed);
    return reply.send({
      ...toShown(row),
      plan: JSON.parse(sealed.toString("utf8")) as JsonObject,
      constraints: row.constraints,
      now: await toNow(deps, row),
    });
  });

  app.post<{ Params: { id: string }; Body: ReceivedBody }>("/v1/approvals/:id/approve", (request) => {
    const body = parseInput(approveSchema, bodyOf(request).json);
    return answer(request, { isApproved: true, planDigest: body.plan_digest, note: body.note ?? null });
  });

  app.post<{ Params: { id: string }; Body: ReceivedBody }>("/v1/approvals/:id/refuse", (request) => {
    const body = parseInput(refuseSchema, bodyOf(request).json);
    return answer(request, {
      isApproved: false,
      planDigest: body.plan_digest ?? null,
      note: body.note ?? null,
    });
  });

  async function answer(
    request: HttpRequest,
    word: { readonly isApproved: boolean; readonly planDigest: string | null; readonly note: string | null },
  ): Promise<object> {
    const { tenantId, subject } = callerOf(request);
    const { id } = request.params as { readonly id: string };
    return toShown(await decideApproval(deps, tenantId, { ...word, approvalId: id, by: subject }));
  }
}

/** What has changed since: the policy of now, and what it says of the same plan if it is approved. */
async function toNow(deps: ApprovalRouteDeps, row: ApprovalRow): Promise<object> {
  const revision = deps.policy().revision;
  const ruling = await decideAgain(deps, row.decisionId, (facts) => ({ ...facts, approval: null }));
  const base = { policy_revision: revision, is_same_policy: revision === row.policyRevision };
  if (ruling === null) return { ...base, decision: null };
  return {
    ...base,
    decision: ruling.decision,
    reason_code: ruling.reason,
    message: ruling.message,
    matched_rules: ruling.matchedRules,
    risk: { score: ruling.riskScore, level: ruling.risk },
    plan_digest: ruling.planDigest,
    is_same_plan: ruling.planDigest === row.planDigest,
  };
}

function toShown(row: ApprovalRow): object {
  return {
    id: row.approvalId,
    state: row.state,
    runtime: row.runtime,
    session_id: row.sessionId,
    agent_id: row.agentId === "" ? null : row.agentId,
    requester: row.requester,
    tool: row.tool,
    effect_class: row.effectClass,
    risk: { score: row.riskScore, level: row.risk },
    message: row.message,
    matched_rules: row.matchedRules,
    plan_digest: row.planDigest,
    decision_id: row.decisionId,
    correlation_id: row.correlationId,
    policy_revision: row.policyRevision,
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt.toISOString(),
    decided_at: row.decidedAt?.toISOString() ?? null,
    decided_by: row.decidedBy,
    note: row.note,
    consumed_by_decision: row.consumedByDecision,
  };
}
