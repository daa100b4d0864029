import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { notifyOutbox, outboxValues, toOutboxRows } from "../platform/outbox.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";
import { toDeed, toReason } from "./recovery-event.ts";

/** An event that the broker refused, without its payload. */
export interface ParkedEvent {
  readonly event_id: string;
  readonly type: string;
  readonly tenant_id: string;
  readonly ordering_key: string;
  readonly bytes: number;
  readonly code: string;
  readonly reason: string;
  readonly created_at: Date;
  readonly parked_at: Date;
  readonly archived_at: Date | null;
  readonly archived_by: string | null;
}

/** Parked events, the oldest first; those that were put away only when asked for. */
export async function listParked(
  deps: RecoveryDeps,
  wanted: { readonly archived: boolean; readonly limit: number },
): Promise<readonly ParkedEvent[]> {
  const found = await deps.database.query<ParkedEvent>(
    `SELECT 'evt_' || id AS event_id, aggregatetype AS type, tenant_id, aggregateid AS ordering_key,
        octet_length(payload) AS bytes, code, reason, created_at, parked_at, archived_at, archived_by
      FROM outbox.parked WHERE $1 OR archived_at IS NULL ORDER BY seq LIMIT $2`,
    [wanted.archived, wanted.limit],
  );
  return found.rows;
}

interface EndedRow {
  readonly id: string;
  readonly type: string;
  readonly tenant_id: string;
  readonly code: string;
}

/**
 * Puts parked events back into the outbox, behind what their keys have said since, or away for good. Named ones; throws
 * PUBLICATION_UNKNOWN when none of them is parked. What is refused again is parked again.
 */
export async function endParking(
  deps: RecoveryDeps,
  eventIds: readonly string[],
  choice: "retried" | "archived",
  how: { readonly by: string; readonly reason: string },
): Promise<number> {
  const uuids = eventIds.map((id) => id.replace(/^evt_/, ""));
  const reason = toReason(how.reason);
  const count = await deps.database.transaction(async (tx) => {
    const ended = await tx.query<EndedRow>(
      `SELECT id, aggregatetype AS type, tenant_id, code FROM outbox.parked
        WHERE id = ANY ($1::uuid[]) AND archived_at IS NULL ORDER BY seq FOR UPDATE`,
      [uuids],
    );
    if (ended.rowCount === 0) throw new Fault("PUBLICATION_UNKNOWN");
    const deeds: Envelope[] = ended.rows.map((row) => {
      const summary = { refused_event_id: `evt_${row.id}`, refused_type: row.type, code: row.code, reason };
      return toDeed(
        deps,
        choice === "retried"
          ? draft("fabric.publication.retried", { ...summary, retried_by: how.by })
          : draft("fabric.publication.archived", { ...summary, archived_by: how.by }),
        {
          by: how.by,
          tenantId: row.tenant_id,
          correlationId: `cor_${row.id}`,
          causationId: `evt_${row.id}`,
        },
      );
    });
    const values = outboxValues(toOutboxRows(deps.codec, deeds));
    if (choice === "archived") {
      await tx.query(
        `UPDATE outbox.parked SET archived_at = clock_timestamp(), archived_by = $2, archive_reason = $3
          WHERE id = ANY ($1::uuid[]) AND archived_at IS NULL`,
        [uuids, how.by, reason],
      );
      await tx.query("SELECT outbox.append($1::uuid[], $2, $3, $4, $5, $6::jsonb[])", values);
    } else {
      await tx.query(
        `WITH gone AS (DELETE FROM outbox.parked WHERE id = ANY ($7::uuid[]) AND archived_at IS NULL RETURNING *)
          SELECT outbox.append(array_agg(id ORDER BY seq) || $1::uuid[],
            array_agg(aggregatetype::text ORDER BY seq) || $2::text[],
            array_agg(aggregateid::text ORDER BY seq) || $3::text[], array_agg(tenant_id ORDER BY seq) || $4::text[],
            array_agg(payload ORDER BY seq) || $5::bytea[], array_agg(headers ORDER BY seq) || $6::jsonb[])
          FROM gone`,
        [...values, uuids],
      );
    }
    return ended.rowCount;
  });
  notifyOutbox(deps.database);
  return count;
}
