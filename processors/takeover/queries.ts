import type { Transaction } from "../kit/transaction.ts";
import type { CauseRow, DeedRow, ItemEvidence, TrailRow } from "./item-evidence.ts";
import { toItemEvidence } from "./item-evidence.ts";

/** Tables whose whole content a rebuild must give again, each with a total order. */
export const dumpTables = [
  { table: "evidence", orderBy: "event_id" },
  { table: "item_events", orderBy: "event_id" },
  { table: "letter_events", orderBy: "event_id" },
  { table: "items", orderBy: "item_id" },
] as const;

/** A person reads some dozens; the first ones tell what it is, and the item's count how many there are. */
const causesMax = 50;
const deedsMax = 500;
/** Around the causes: a correlation can hold a million events, and nobody reads them here. */
const chainMax = 400;

const trailColumns = `t.event_id, t.event_type, t.recorded_at, t.correlation_id, t.causation_id, t.origin, t.user_id,
  t.agent_id, t.session_id, t.tool_call_id, t.tool, t.action, t.resource_ref, t.risk, t.decision, t.reason_code,
  t.policy_revision, t.matched_rules, t.decision_id, t.capability_id, t.approval_id, t.plan_digest, t.effect_id,
  t.receipt_id, t.payload_ref, t.summary`;

/**
 * What an item rests on: the events of its time, what was done with it, and from the audit trail what led there. Empty for
 * an item that is not there or is another tenant's.
 */
export async function loadEvidence(tx: Transaction, tenantId: string, itemId: string): Promise<ItemEvidence> {
  const causes = await tx.query<CauseRow>({
    name: "takeover-causes",
    text: `SELECT e.event_id, e.event_type, e.recorded_at, e.correlation_id, e.user_id, e.agent_id, e.session_id,
        e.tool_call_id, e.tool, e.action, e.resource_ref, e.risk, e.reason_code, e.policy_revision, e.matched_rules,
        e.decision_id, e.capability_id, e.approval_id, e.plan_digest, e.effect_id, e.receipt_id, e.payload_ref,
        e.title, e.role
      FROM takeover.items AS i JOIN takeover.evidence AS e
        ON (e.tenant_id, e.cause, e.cause_key) = (i.tenant_id, i.cause, i.cause_key)
        AND e.recorded_at >= i.opened_at AND e.recorded_at <= coalesce(i.closed_at, 'infinity')
      WHERE i.item_id = $1 AND i.tenant_id = $2
      ORDER BY e.recorded_at, e.event_id LIMIT $3`,
    values: [itemId, tenantId, causesMax + 1],
  });
  const shown = causes.rows.slice(0, causesMax);
  const deeds = await tx.query<DeedRow>({
    name: "takeover-deeds",
    text: `SELECT event_id, kind, recorded_at, person, assigned_to, lease_ends_at, note, outcome, proposal
      FROM takeover.item_events WHERE item_id = $1 AND tenant_id = $2 ORDER BY recorded_at, event_id LIMIT $3`,
    values: [itemId, tenantId, deedsMax],
  });
  const trail = await tx.query<TrailRow>({
    name: "takeover-trail",
    text: `WITH found AS (
        SELECT event_id FROM audit.trail WHERE event_id = ANY ($2::uuid[])
        UNION
        (SELECT t.event_id FROM unnest($3::text[], $4::text[]) AS c(session_id, tool_call_id)
          JOIN audit.trail AS t ON t.tool_call_id = c.tool_call_id AND t.session_id IS NOT DISTINCT FROM c.session_id
          WHERE t.tenant_id = $1 LIMIT $6)
        UNION
        (SELECT t.event_id FROM audit.trail AS t WHERE t.correlation_id = ANY ($5::text[]) AND t.tenant_id = $1 LIMIT $6)
      )
      SELECT ${trailColumns} FROM audit.trail AS t JOIN found USING (event_id) WHERE t.tenant_id = $1
      ORDER BY t.recorded_at, t.event_id`,
    values: [
      tenantId,
      shown.map((one) => one.event_id),
      shown.map((one) => one.session_id),
      shown.map((one) => one.tool_call_id),
      [...new Set(shown.map((one) => one.correlation_id))],
      chainMax,
    ],
  });
  const isComplete =
    causes.rows.length <= causesMax && deeds.rows.length < deedsMax && trail.rows.length < chainMax;
  return toItemEvidence(shown, deeds.rows, trail.rows, isComplete);
}
