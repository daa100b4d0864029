import type { Constraints } from "../../../schemas/gate.ts";
import { toUuid } from "../../platform/ids.ts";
import type { Tx } from "../../platform/postgres.ts";
import { lineMax } from "../facts.ts";

/** A use of a right, as it was recorded. */
export interface RecordedUse {
  readonly usageId: string;
  readonly calls: number;
  readonly callsUsed: number;
  readonly spentBy: string;
}

/** A right as it stands, by the server's clock. */
export interface CapabilityState {
  readonly capabilityId: string;
  readonly tenantId: string;
  readonly decisionId: string;
  readonly correlationId: string;
  /** The event of the call that it was issued for. */
  readonly requestedEventId: string;
  readonly sessionId: string;
  readonly runtime: string;
  readonly tool: string;
  /** Secrets masked, cut. */
  readonly resource: string | null;
  readonly planDigest: string;
  readonly policyRevision: string;
  readonly constraints: Constraints;
  readonly maxCalls: number;
  readonly callsUsed: number;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly isExpired: boolean;
  readonly isRevoked: boolean;
  readonly isPlanRevoked: boolean;
  readonly isTenantFrozen: boolean;
  /** What holds it back for now; it is good again when that is over, unless its time has come. */
  readonly heldBy: "breaker" | "incident" | null;
}

interface StateRow {
  readonly capability_id: string;
  readonly tenant_id: string;
  readonly decision_id: string;
  readonly correlation_id: string;
  readonly requested_event_id: string;
  readonly session_id: string;
  readonly runtime: string;
  readonly tool: string;
  readonly resource: string | null;
  readonly plan_digest: string;
  readonly policy_revision: string;
  readonly constraints: Constraints;
  readonly max_calls: number;
  readonly calls_used: number;
  readonly issued_at: Date;
  readonly expires_at: Date;
  readonly is_expired: boolean;
  readonly is_revoked: boolean;
  readonly is_plan_revoked: boolean;
  readonly is_frozen: boolean;
  readonly held_by: "breaker" | "incident" | null;
}

/**
 * A right's holds are found as a call's are (`findHolds`); of several an incident is told first. Where the walk
 * up was cut off, any hold on a session counts: it may be on one further up. */
export const heldByText = `(SELECT max(h.source) FROM incidents.holds AS h
    WHERE h.tenant_id IN (c.tenant_id, '*') AND h.lifted_at IS NULL
      AND (h.until IS NULL OR h.until > clock_timestamp())
      AND CASE h.scope
        WHEN 'correlation' THEN h.scope_id = 'cor_' || d.correlation_id
        WHEN 'session' THEN h.scope_id = s.session_id OR h.scope_id IN
          (WITH RECURSIVE up (key, step) AS (SELECT s.root_key, 1 WHERE s.root_key IS NOT NULL UNION ALL
             SELECT p.root_key, up.step + 1 FROM up JOIN gate.sessions AS p ON p.session_key = up.key
             WHERE p.root_key IS NOT NULL AND up.step < ${String(lineMax)})
           SELECT CASE WHEN up.step < ${String(lineMax)} THEN r.session_id ELSE h.scope_id END FROM up JOIN gate.sessions AS r ON r.session_key = up.key)
        WHEN 'agent' THEN h.scope_id IN (s.runtime || '/' || s.session_id || '/' || coalesce(d.request ->> 'agent_id', ''),
          coalesce(d.request ->> 'agent_id', ''))
        WHEN 'user' THEN h.scope_id = d.request ->> 'user_id'
        WHEN 'tool' THEN h.scope_id = c.tool
        ELSE true END)`;

/** Columns and joins of a right's state; `c` is the right's row. */
export const stateColumns = `c.capability_id, c.tenant_id, c.decision_id, d.correlation_id, d.requested_event_id,
  s.session_id, s.runtime, c.tool, c.resource, c.plan_digest, c.policy_revision, c.constraints, c.max_calls,
  c.calls_used, c.issued_at, c.expires_at, c.expires_at <= clock_timestamp() AS is_expired,
  c.revoked_at IS NOT NULL AS is_revoked, t.state <> 'active' AS is_frozen,
  EXISTS (SELECT FROM gate.revoked_plans AS r WHERE r.tenant_id = c.tenant_id AND r.digest = c.plan_digest
    AND r.until > clock_timestamp()) AS is_plan_revoked,
  ${heldByText} AS held_by`;
export const stateJoins = `JOIN gate.decisions AS d ON d.decision_id = c.decision_id
  JOIN gate.sessions AS s ON s.session_key = c.session_key
  JOIN access.tenants AS t ON t.tenant_id = c.tenant_id`;

/** A right of this tenant; null: it has none of this id. */
export async function loadCapability(
  tx: Tx,
  tenantId: string,
  capabilityId: string,
): Promise<CapabilityState | null> {
  const found = await tx.query({
    name: "capability-state",
    text: `SELECT ${stateColumns} FROM gate.capabilities AS c ${stateJoins}
      WHERE c.capability_id = $1::uuid AND c.tenant_id = $2`,
    values: [toUuid(capabilityId), tenantId],
  });
  const row = found.rows[0];
  return row === undefined ? null : toCapabilityState(row);
}

/** A row of `stateColumns`. */
export function toCapabilityState(found: Record<string, unknown>): CapabilityState {
  const row = found as unknown as StateRow;
  return {
    capabilityId: `cap_${row.capability_id}`,
    tenantId: row.tenant_id,
    decisionId: `dec_${row.decision_id}`,
    correlationId: `cor_${row.correlation_id}`,
    requestedEventId: `evt_${row.requested_event_id}`,
    sessionId: row.session_id,
    runtime: row.runtime,
    tool: row.tool,
    resource: row.resource,
    planDigest: row.plan_digest,
    policyRevision: row.policy_revision,
    constraints: row.constraints,
    maxCalls: row.max_calls,
    callsUsed: row.calls_used,
    issuedAtMs: row.issued_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
    isExpired: row.is_expired,
    isRevoked: row.is_revoked,
    isPlanRevoked: row.is_plan_revoked,
    isTenantFrozen: row.is_frozen,
    heldBy: row.held_by,
  };
}

/** The use that was recorded under a key; null: none. */
export async function loadUse(
  tx: Tx,
  capabilityId: string,
  idempotencyKey: string,
): Promise<RecordedUse | null> {
  const found = await tx.query<{ usage_id: string; calls: number; calls_used: number; spent_by: string }>({
    name: "capability-use",
    text: `SELECT usage_id, calls, calls_used, spent_by FROM gate.capability_spends
      WHERE capability_id = $1::uuid AND idempotency_key = $2`,
    values: [toUuid(capabilityId), idempotencyKey],
  });
  const row = found.rows[0];
  if (row === undefined) return null;
  return {
    usageId: `use_${row.usage_id}`,
    calls: row.calls,
    callsUsed: row.calls_used,
    spentBy: row.spent_by,
  };
}
