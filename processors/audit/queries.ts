import type { Transaction } from "../kit/transaction.ts";
import type { TrailEvent, WhoReport } from "./who.ts";
import { toWhoReport } from "./who.ts";

/** Most events of one call that a report shows. */
const maxEvents = 500;

/**
 * What a comparison of two runs reads: the place of an event in the log, and the digest over it, are those of one run.
 */
export const dumpTables = [
  { table: "trail", orderBy: "event_id", without: ["topic", "partition", "kafka_offset", "row_digest"] },
] as const;

/** Who asked for a tool call, which rules matched, under which revision, and what happened: one query. */
export async function loadWho(tx: Transaction, toolCallId: string, tenantId?: string): Promise<WhoReport> {
  const found = await tx.query<TrailEvent>(
    `SELECT event_id, event_type, tenant_id, recorded_at, user_id, agent_id, runtime_kind, session_id, turn_id,
        tool_call_id, attempt, correlation_id, origin, tool, action, resource_ref, policy_revision, risk, decision,
        reason_code, matched_rules, decision_id, capability_id, approval_id, plan_digest, effect_id, receipt_id,
        payload_ref, summary, erased_at
      FROM audit.trail WHERE tool_call_id = $1 AND ($2::text IS NULL OR tenant_id = $2)
      ORDER BY recorded_at, event_id LIMIT ${maxEvents}`,
    [toolCallId, tenantId ?? null],
  );
  return toWhoReport(toolCallId, found.rows);
}
