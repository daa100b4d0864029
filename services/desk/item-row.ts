import { Fault } from "../../schemas/faults.ts";
import type { Tx } from "../platform/postgres.ts";

/** An item of the queue with the claim that holds right now. */
export interface ItemRow {
  readonly itemId: string;
  readonly tenantId: string;
  readonly cause: string;
  readonly causeKey: string;
  readonly generation: number;
  readonly title: string;
  readonly state: "open" | "claimed" | "resolved" | "settled";
  readonly openedAt: Date;
  readonly lastSeenAt: Date;
  readonly occurrences: bigint;
  readonly dueAt: Date;
  /** Waits, and is past its time. */
  readonly isOverdue: boolean;
  readonly breachedAt: Date | null;
  /** Whose lease runs; null when nobody's does. */
  readonly claimedBy: string | null;
  readonly leaseEndsAt: Date | null;
  readonly notes: number;
  readonly closedAt: Date | null;
  readonly closedBy: string | null;
  readonly outcome: string | null;
  readonly proposal: string | null;
  readonly resolutionNote: string | null;
  readonly correlationId: string;
  readonly firstEventId: string;
  /** The database's clock when it was read. */
  readonly readAt: Date;
}

export const queueStates = ["waiting", "open", "claimed", "breached", "resolved", "settled", "all"] as const;
export type QueueState = (typeof queueStates)[number];

/** What the projection says, but for what the desk's own rows know better: they are of the same transaction. */
const itemSql = `SELECT i.item_id AS "itemId", i.tenant_id AS "tenantId", i.cause, i.cause_key AS "causeKey", i.generation,
    i.title, i.opened_at AS "openedAt", i.last_seen_at AS "lastSeenAt", i.occurrences, i.due_at AS "dueAt",
    i.breached_at AS "breachedAt", i.notes, coalesce(i.closed_at, c.resolved_at) AS "closedAt",
    coalesce(i.closed_by, CASE WHEN c.resolved_at IS NOT NULL THEN c.held_by END) AS "closedBy",
    i.outcome, i.proposal, i.resolution_note AS "resolutionNote", i.correlation_id AS "correlationId",
    i.first_event_id AS "firstEventId", n.now AS "readAt", s.state,
    s.state IN ('open', 'claimed') AND i.due_at <= n.now AS "isOverdue",
    CASE WHEN s.state = 'claimed' THEN c.held_by END AS "claimedBy",
    CASE WHEN s.state = 'claimed' THEN c.lease_ends_at END AS "leaseEndsAt"
  FROM takeover.items AS i
  LEFT JOIN desk.claims AS c ON c.item_id = i.item_id AND c.tenant_id = i.tenant_id
  CROSS JOIN (SELECT clock_timestamp() AS now) AS n
  CROSS JOIN LATERAL (SELECT CASE
    WHEN i.closed_at IS NOT NULL THEN i.state
    WHEN c.resolved_at IS NOT NULL THEN 'resolved'
    WHEN c.lease_ends_at > n.now THEN 'claimed'
    ELSE 'open' END AS state) AS s`;

/** One item of the tenant; throws TAKEOVER_UNKNOWN, also for one that the queue has not got yet. */
export async function loadItem(tx: Tx, tenantId: string, itemId: string): Promise<ItemRow> {
  const found = await tx.query<ItemRow>({
    name: "desk-item",
    text: `${itemSql} WHERE i.item_id = $1 AND i.tenant_id = $2`,
    values: [itemId, tenantId],
  });
  const [row] = found.rows;
  if (row === undefined) throw new Fault("TAKEOVER_UNKNOWN");
  return row;
}

/** Items of the tenant: what waits by its due time, what is closed with the newest first. */
export async function listItems(
  tx: Tx,
  tenantId: string,
  wanted: { readonly state: QueueState; readonly limit: number },
): Promise<readonly ItemRow[]> {
  const found = await tx.query<ItemRow>({
    name: "desk-items",
    text: `${itemSql} WHERE i.tenant_id = $1 AND CASE $2::text
        WHEN 'all' THEN true
        WHEN 'waiting' THEN s.state IN ('open', 'claimed')
        WHEN 'breached' THEN s.state IN ('open', 'claimed') AND i.due_at <= n.now
        ELSE s.state = $2 END
      ORDER BY s.state IN ('open', 'claimed') DESC, CASE WHEN s.state IN ('open', 'claimed') THEN i.due_at END,
        i.closed_at DESC, i.item_id LIMIT $3`,
    values: [tenantId, wanted.state, wanted.limit],
  });
  return found.rows;
}
