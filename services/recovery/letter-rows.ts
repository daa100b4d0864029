import { Fault } from "../../schemas/faults.ts";
import type { Tx } from "../platform/postgres.ts";
import type { LetterFilter, LetterState, Scope } from "./letter-filter.ts";
import { toCondition } from "./letter-filter.ts";

/** Letters of one cause. */
export interface LetterGroup {
  readonly kind: string;
  readonly fault_kind: string;
  readonly code: string;
  readonly processor: string;
  readonly topic: string;
  readonly letters: number;
  /** How many of them wait for a redrive. */
  readonly waiting: number;
  readonly tenants: number;
  readonly attempts_max: number;
  readonly redrives_max: number;
  readonly first_buried_at: Date;
  readonly last_buried_at: Date;
  /** One of the details, masked as all of them are. */
  readonly example: string;
}

/** One letter, without its bytes: those are in the vault, under the reference. */
export interface LetterRow {
  readonly letter_id: string;
  readonly kind: string;
  readonly state: string;
  readonly fault_kind: string;
  readonly code: string;
  readonly detail: string;
  readonly processor: string;
  readonly processor_version: string;
  readonly attempts: number;
  readonly redrives: number;
  readonly tenant_id: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly record_timestamp: Date;
  readonly event_id: string | null;
  readonly payload_ref: string;
  readonly payload_digest: string;
  readonly accountable: string;
  readonly redeliver_role: string;
  readonly buried_at: Date;
  readonly failed_again_at: Date | null;
  readonly redrive_id: string | null;
  readonly redriven_at: Date | null;
  readonly redriven_by: string | null;
  readonly archived_at: Date | null;
  readonly archived_by: string | null;
  readonly archive_reason: string | null;
}

const columns = `l.id AS letter_id, l.kind, CASE WHEN l.archived_at IS NOT NULL THEN 'archived'
    WHEN l.redriven_at IS NOT NULL THEN 'redriven' WHEN l.redrive_id IS NOT NULL THEN 'waiting' ELSE 'open' END AS state,
  l.fault_kind, l.code, l.detail, l.processor, l.processor_version, l.attempts, l.redrives, l.tenant_id, l.topic,
  l.partition, l.kafka_offset AS "offset", l.record_timestamp, 'evt_' || l.event_id AS event_id, l.payload_ref,
  l.payload_digest, l.accountable, l.redeliver_role, l.buried_at, l.failed_again_at, l.redrive_id, l.redriven_at,
  l.redriven_by, l.archived_at, l.archived_by, l.archive_reason`;

/** Letters by cause, the largest group first. */
export async function groupLetters(
  tx: Tx,
  filter: LetterFilter,
  state: LetterState,
  scope: Scope,
  limit: number,
): Promise<readonly LetterGroup[]> {
  const { sql, values } = toCondition(filter, state, scope, [limit]);
  const found = await tx.query<LetterGroup>(
    `SELECT l.kind, l.fault_kind, l.code, l.processor, l.topic, count(*)::int AS letters,
        count(*) FILTER (WHERE l.redrive_id IS NOT NULL AND l.redriven_at IS NULL AND l.archived_at IS NULL)::int AS waiting,
        count(DISTINCT l.tenant_id)::int AS tenants, max(l.attempts) AS attempts_max, max(l.redrives) AS redrives_max,
        min(l.buried_at) AS first_buried_at, max(l.buried_at) AS last_buried_at, min(l.detail) AS example
      FROM host.letters AS l WHERE ${sql}
      GROUP BY l.kind, l.fault_kind, l.code, l.processor, l.topic
      ORDER BY count(*) DESC, l.processor, l.topic, l.code, l.kind LIMIT $1`,
    values,
  );
  return found.rows;
}

/** Single letters, the newest first. */
export async function listLetters(
  tx: Tx,
  filter: LetterFilter,
  state: LetterState,
  scope: Scope,
  limit: number,
): Promise<readonly LetterRow[]> {
  const { sql, values } = toCondition(filter, state, scope, [limit]);
  const found = await tx.query<LetterRow>(
    `SELECT ${columns} FROM host.letters AS l WHERE ${sql} ORDER BY l.buried_at DESC, l.id LIMIT $1`,
    values,
  );
  return found.rows;
}

/** One letter; throws LETTER_UNKNOWN, also for one of another tenant. */
export async function loadLetter(tx: Tx, id: string, scope: Scope): Promise<LetterRow> {
  const [row] = await listLetters(tx, { ids: [id] }, "all", scope, 1);
  if (row === undefined) throw new Fault("LETTER_UNKNOWN");
  return row;
}
