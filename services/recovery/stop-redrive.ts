import type { Draft, Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { newUuidV7 } from "../platform/ids.ts";
import { appendOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Tx } from "../platform/postgres.ts";
import type { Scope } from "./letter-filter.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";
import { toDeed, toReason } from "./recovery-event.ts";

/** Redrives that are meant; without ids all that are open. */
export interface RedriveChoice {
  readonly ids: readonly string[] | null;
  readonly scope: Scope;
}
interface Deed {
  readonly by: string;
  readonly reason: string;
}

/** A redrive that was stopped, or goes on. */
export interface ChangedRedrive {
  readonly redrive_id: string;
  readonly processor: string;
  /** Letters that have not gone through yet. */
  readonly letters_left: number;
}

interface ChangedRow {
  readonly id: string;
  readonly processor: string;
  readonly tenant_id: string | null;
}

/**
 * Stops redrives: when it answers, no letter of theirs goes through any more, since it waits for the batch in hand. Their
 * letters keep waiting for them; given up, they wait for nothing again, and the redrive is over.
 * INVARIANT: nothing moves after the answer
 * (test/integration/redrive-stop.test.ts "waits for the batch in hand, after which nothing moves").
 */
export function stopRedrives(
  deps: RecoveryDeps,
  choice: RedriveChoice,
  how: Deed & { readonly givesUp: boolean },
): Promise<readonly ChangedRedrive[]> {
  const reason = toReason(how.reason);
  return deps.database.transaction(async (tx) => {
    const { rows } = await tx.query<ChangedRow>({
      name: "recovery-stop-redrives",
      text: `UPDATE host.redrives SET stopped_at = clock_timestamp(), stopped_by = $3, stop_reason = $4,
          finished_at = CASE WHEN $5 THEN clock_timestamp() END
        WHERE finished_at IS NULL AND (stopped_at IS NULL OR $5)
          AND ($1::uuid[] IS NULL OR id = ANY ($1)) AND ($2::text IS NULL OR tenant_id = $2)
        RETURNING id, processor, tenant_id`,
      values: [choice.ids, choice.scope, how.by, reason, how.givesUp],
    });
    const left = await countLeft(tx, rows);
    if (how.givesUp && rows.length > 0) {
      await tx.query({
        name: "recovery-free-letters",
        text: `UPDATE host.letters SET redrive_id = NULL
          WHERE redrive_id = ANY ($1::uuid[]) AND redriven_at IS NULL AND archived_at IS NULL`,
        values: [rows.map(({ id }) => id)],
      });
    }
    return tell(deps, tx, rows, left, how.by, (row, lettersLeft) =>
      draft("fabric.redrive.stopped", {
        redrive_id: row.id,
        consumer: row.processor,
        letters_left: lettersLeft,
        is_given_up: how.givesUp,
        stopped_by: how.by,
        reason,
      }),
    );
  });
}

/** Lets redrives that were stopped go on where they stopped, at their rate. */
export function resumeRedrives(
  deps: RecoveryDeps,
  choice: RedriveChoice,
  how: Deed,
): Promise<readonly ChangedRedrive[]> {
  const reason = toReason(how.reason);
  return deps.database.transaction(async (tx) => {
    const { rows } = await tx.query<ChangedRow>({
      name: "recovery-resume-redrives",
      text: `UPDATE host.redrives SET stopped_at = NULL, stopped_by = NULL, stop_reason = NULL
        WHERE finished_at IS NULL AND stopped_at IS NOT NULL
          AND ($1::uuid[] IS NULL OR id = ANY ($1)) AND ($2::text IS NULL OR tenant_id = $2)
        RETURNING id, processor, tenant_id`,
      values: [choice.ids, choice.scope],
    });
    return tell(deps, tx, rows, await countLeft(tx, rows), how.by, (row, lettersLeft) =>
      draft("fabric.redrive.resumed", {
        redrive_id: row.id,
        consumer: row.processor,
        letters_left: lettersLeft,
        resumed_by: how.by,
        reason,
      }),
    );
  });
}

/** By a statement of its own, which sees what the batch did that was waited for. */
async function countLeft(tx: Tx, rows: readonly ChangedRow[]): Promise<ReadonlyMap<string, number>> {
  if (rows.length === 0) return new Map();
  const found = await tx.query<{ redrive_id: string; letters: number }>({
    name: "recovery-letters-left",
    text: `SELECT redrive_id, count(*)::int AS letters FROM host.letters
      WHERE redrive_id = ANY ($1::uuid[]) AND redriven_at IS NULL AND archived_at IS NULL GROUP BY redrive_id`,
    values: [rows.map(({ id }) => id)],
  });
  return new Map(found.rows.map((row) => [row.redrive_id, row.letters]));
}

/** Each one is an event of its tenant. */
async function tell(
  deps: RecoveryDeps,
  tx: Tx,
  rows: readonly ChangedRow[],
  left: ReadonlyMap<string, number>,
  by: string,
  toDraft: (row: ChangedRow, lettersLeft: number) => Draft,
): Promise<readonly ChangedRedrive[]> {
  const events = rows.map((row): Envelope =>
    toDeed(deps, toDraft(row, left.get(row.id) ?? 0), {
      by,
      ...(row.tenant_id === null ? {} : { tenantId: row.tenant_id }),
      correlationId: `cor_${newUuidV7(deps.clock.nowMs())}`,
    }),
  );
  await appendOutbox(tx, toOutboxRows(deps.codec, events));
  return rows.map((row) => ({
    redrive_id: row.id,
    processor: row.processor,
    letters_left: left.get(row.id) ?? 0,
  }));
}
