import { draft } from "../../schemas/envelope.ts";
import type { LetterKind } from "../../schemas/generated/types.ts";
import { appendOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { LetterFilter, Scope } from "./letter-filter.ts";
import { toCondition } from "./letter-filter.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";
import { toDeed, toReason } from "./recovery-event.ts";

/** Letters of one transaction: each has an event of its own. */
const batchLetters = 1_000;

interface ArchivedRow {
  readonly id: string;
  readonly kind: LetterKind;
  readonly code: string;
  readonly processor: string;
  readonly attempts: number;
  readonly tenant_id: string;
  readonly topic: string;
  readonly partition: number;
  readonly kafka_offset: bigint;
  readonly event_id: string | null;
}

/**
 * Puts letters away for good: they are not offered for a redrive any more. Only those that wait for nothing, and that the
 * person's roles may decide about. In batches; what was done stays when a later one fails. Returns how many.
 */
export async function archiveLetters(
  deps: RecoveryDeps,
  wish: { readonly filter: LetterFilter; readonly scope: Scope; readonly roles: readonly string[] },
  how: { readonly by: string; readonly reason: string },
): Promise<number> {
  const reason = toReason(how.reason);
  for (let total = 0; ;) {
    const count = await deps.database.transaction(async (tx) => {
      const { sql, values } = toCondition(wish.filter, "open", wish.scope, [
        how.by,
        reason,
        wish.roles,
        batchLetters,
      ]);
      const gone = await tx.query<ArchivedRow>(
        `UPDATE host.letters AS a SET archived_at = clock_timestamp(), archived_by = $1, archive_reason = $2
          WHERE a.id IN (
            SELECT l.id FROM host.letters AS l
            WHERE ${sql} AND (l.redeliver_role = ANY ($3::text[]) OR 'admin' = ANY ($3::text[]))
            ORDER BY l.id LIMIT $4 FOR UPDATE SKIP LOCKED)
          RETURNING a.id, a.kind, a.code, a.processor, a.attempts, a.tenant_id, a.topic, a.partition, a.kafka_offset,
            a.event_id`,
        values,
      );
      const events = gone.rows.map((row) => {
        const eventId = row.event_id === null ? null : `evt_${row.event_id}`;
        return toDeed(
          deps,
          draft("fabric.letter.archived", {
            letter_id: row.id,
            kind: row.kind,
            code: row.code,
            consumer: row.processor,
            attempts: row.attempts,
            source_topic: row.topic,
            source_partition: row.partition,
            source_offset: row.kafka_offset,
            source_event_id: eventId,
            archived_by: how.by,
            reason,
          }),
          { by: how.by, tenantId: row.tenant_id, correlationId: `cor_${row.id}`, causationId: eventId },
        );
      });
      await appendOutbox(tx, toOutboxRows(deps.codec, events));
      return gone.rowCount;
    });
    total += count;
    if (count < batchLetters) return total;
  }
}
