import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { newUuidV7 } from "../platform/ids.ts";
import { appendOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Tx } from "../platform/postgres.ts";
import { servedTenantSql } from "../platform/served-tenant.ts";
import type { LetterFilter, Scope } from "./letter-filter.ts";
import { toCondition, toWords } from "./letter-filter.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";
import { toDeed, toReason } from "./recovery-event.ts";

/** So often a letter may be sent again before somebody has to name it: what fails a fifth time, fails. */
export const maxRedrives = 5;
/** Letters of one request: their rows are marked in one statement. */
export const maxLetters = 100_000;

/** Letters to be sent through their consumer again. */
export interface RedriveWish {
  readonly filter: LetterFilter;
  readonly scope: Scope;
  /** Roles of whoever asks: each letter says which one it takes. */
  readonly roles: readonly string[];
  /** Also letters that were redriven `maxRedrives` times; for letters that are named. */
  readonly beyondLimit: boolean;
}

/** What a redrive would do with the letters of one cause. */
export interface PlannedGroup {
  readonly processor: string;
  readonly topic: string;
  readonly kind: string;
  readonly code: string;
  readonly letters: number;
  readonly ready: number;
  /** Why the others stay. */
  readonly beyond_limit: number;
  readonly tenant_not_served: number;
  readonly role_missing: number;
}

/** A redrive that was asked for. */
export interface RequestedRedrive {
  readonly redrive_id: string;
  readonly processor: string;
  readonly letters: number;
}

/** A role that may send any letter again. */
const everyLettersRole = "admin";

interface Rules {
  readonly values: readonly unknown[];
  readonly where: string;
  readonly role: string;
  readonly limit: string;
  readonly tenant: string;
}

/** The same words decide what a dry run shows and what is done. */
function toRules(wish: RedriveWish): Rules {
  const first = [wish.roles, wish.beyondLimit, maxRedrives, everyLettersRole];
  const { sql, values } = toCondition(wish.filter, "open", wish.scope, first);
  return {
    values,
    where: sql,
    role: "(l.redeliver_role = ANY ($1::text[]) OR $4 = ANY ($1::text[]))",
    limit: "($2::boolean OR l.redrives < $3::int)",
    tenant: servedTenantSql("l.tenant_id"),
  };
}

/** What would be done, and nothing of it. */
export async function planRedrive(tx: Tx, wish: RedriveWish): Promise<readonly PlannedGroup[]> {
  const { values, where, role, limit, tenant } = toRules(wish);
  const found = await tx.query<PlannedGroup>(
    `SELECT l.processor, l.topic, l.kind, l.code, count(*)::int AS letters,
        count(*) FILTER (WHERE ${role} AND ${limit} AND ${tenant})::int AS ready,
        count(*) FILTER (WHERE ${role} AND NOT ${limit})::int AS beyond_limit,
        count(*) FILTER (WHERE ${role} AND ${limit} AND NOT ${tenant})::int AS tenant_not_served,
        count(*) FILTER (WHERE NOT ${role})::int AS role_missing
      FROM host.letters AS l WHERE ${where}
      GROUP BY l.processor, l.topic, l.kind, l.code ORDER BY count(*) DESC, l.processor, l.topic, l.code`,
    values,
  );
  return found.rows;
}

/**
 * Marks letters for a redrive, one redrive per consumer; the host that runs the consumer does the rest. The oldest
 * `maxLetters` of them: who wants more asks again.
 */
export async function requestRedrive(
  deps: RecoveryDeps,
  wish: RedriveWish,
  how: { readonly by: string; readonly reason: string; readonly perSecond: number },
): Promise<readonly RequestedRedrive[]> {
  if (wish.beyondLimit && wish.filter.ids === undefined)
    throw new Fault("REQUEST_INVALID", "beyond_limit is for letters that are named: give ids");
  return deps.database.transaction(async (tx) => {
    const { values, where, role, limit, tenant } = toRules(wish);
    const at = values.length;
    const chosen = await tx.query<{ processor: string; redrive_id: string; letters: number }>(
      `WITH wanted AS (
          SELECT l.id, l.processor FROM host.letters AS l WHERE ${where} AND ${role} AND ${limit} AND ${tenant}
          ORDER BY l.buried_at, l.id LIMIT $${String(at + 1)}
        ), each AS (
          SELECT processor, gen_random_uuid() AS redrive_id FROM wanted GROUP BY processor
        ), marked AS (
          UPDATE host.letters AS l SET redrive_id = each.redrive_id FROM wanted JOIN each USING (processor)
          WHERE l.id = wanted.id AND l.redrive_id IS NULL AND l.redriven_at IS NULL AND l.archived_at IS NULL
          RETURNING each.processor, each.redrive_id
        )
        SELECT processor, redrive_id, count(*)::int AS letters FROM marked GROUP BY processor, redrive_id ORDER BY processor`,
      [...values, maxLetters],
    );
    const events: Envelope[] = [];
    const selection = toWords(wish.filter);
    const reason = toReason(how.reason);
    for (const one of chosen.rows) {
      await tx.query({
        name: "recovery-insert-redrive",
        text: `INSERT INTO host.redrives (id, processor, requested_by, reason, selection, letters, per_second, tenant_id)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
        values: [
          one.redrive_id,
          one.processor,
          how.by,
          reason,
          selection,
          one.letters,
          how.perSecond,
          wish.scope,
        ],
      });
      events.push(
        toDeed(
          deps,
          draft("fabric.redrive.requested", {
            redrive_id: one.redrive_id,
            consumer: one.processor,
            letters: one.letters,
            selection,
            per_second: how.perSecond,
            is_beyond_limit: wish.beyondLimit,
            requested_by: how.by,
            reason,
          }),
          {
            by: how.by,
            ...(wish.scope === null ? {} : { tenantId: wish.scope }),
            correlationId: `cor_${newUuidV7(deps.clock.nowMs())}`,
          },
        ),
      );
    }
    await appendOutbox(tx, toOutboxRows(deps.codec, events));
    return chosen.rows;
  });
}

/** How far a redrive is. */
export interface RedriveProgress {
  readonly redrive_id: string;
  readonly processor: string;
  readonly requested_by: string;
  readonly requested_at: Date;
  readonly reason: string;
  readonly letters: number;
  readonly per_second: number;
  readonly processed: number;
  readonly duplicates: number;
  readonly failed: number;
  readonly skipped: number;
  /** What it stands still for; null while it goes on. */
  readonly waits_for: string | null;
  /** When a person stopped it; null: nobody did, or it goes on again. */
  readonly stopped_at: Date | null;
  readonly stopped_by: string | null;
  readonly stop_reason: string | null;
  readonly finished_at: Date | null;
}

/** Redrives by id, or the newest ones; of one tenant, or of all for who sees all. */
export async function loadRedrives(
  tx: Tx,
  wanted: { readonly ids?: readonly string[]; readonly scope: Scope; readonly limit: number },
): Promise<readonly RedriveProgress[]> {
  const found = await tx.query<RedriveProgress>(
    `SELECT r.id AS redrive_id, r.processor, r.requested_by, r.requested_at, r.reason, r.letters, r.per_second, r.processed,
        r.duplicates, r.failed, r.skipped, r.waits_for, r.stopped_at, r.stopped_by, r.stop_reason, r.finished_at
      FROM host.redrives AS r
      WHERE ($1::uuid[] IS NULL OR r.id = ANY ($1)) AND ($2::text IS NULL OR r.tenant_id = $2)
      ORDER BY r.requested_at DESC LIMIT $3`,
    [wanted.ids ?? null, wanted.scope, wanted.limit],
  );
  return found.rows;
}
