import type { Tx } from "../../platform/postgres.ts";

/** A bundle as it was stored: what decisions name. */
export interface StoredRevision {
  readonly revision: string;
  /** The bundle's name, its folder's. */
  readonly name: string;
  /** SHA-256 over all files, hex. */
  readonly digest: string;
  /** Path → text. */
  readonly files: ReadonlyMap<string, string>;
}

export const activationKinds = ["bootstrap", "activate", "rollback"] as const;

/** That a revision became the policy of this deployment. */
export interface ActivationRow {
  readonly activationId: bigint;
  readonly revision: string;
  readonly kind: (typeof activationKinds)[number];
  readonly previousRevision: string | null;
  readonly activatedAtMs: number;
  readonly activatedBy: string;
  readonly note: string | null;
}

/** A revision for a list, with the last time that it became active. */
export interface ListedRevision {
  readonly revision: string;
  readonly name: string;
  readonly digest: string;
  readonly created_at: string;
  readonly created_by: string;
  readonly activated_at: string | null;
  readonly activated_by: string | null;
  readonly is_active: boolean;
}

/** What a bundle calls itself: its revision without the digest's beginning. */
export function toStated(revision: string): string {
  return revision.split("+", 1)[0] ?? revision;
}

/** Adds a revision; one that is there stays. Returns what is stored under the bundle's own name. */
export async function insertRevision(
  tx: Tx,
  one: StoredRevision,
  by: string,
  nowMs: number,
): Promise<{ readonly revision: string; readonly digest: string }> {
  const stated = toStated(one.revision);
  await tx.query(
    `INSERT INTO gate.policy_revisions (revision, name, stated, digest, files, created_at, created_by)
      VALUES ($1, $2, $3, $4, $5::jsonb, $6, $7) ON CONFLICT DO NOTHING`,
    [
      one.revision,
      one.name,
      stated,
      one.digest,
      JSON.stringify(Object.fromEntries(one.files)),
      new Date(nowMs).toISOString(),
      by,
    ],
  );
  const found = await tx.query<{ revision: string; digest: string }>(
    `SELECT revision, digest FROM gate.policy_revisions WHERE revision = $1 OR (name = $2 AND stated = $3)
      ORDER BY revision <> $1`,
    [one.revision, one.name, stated],
  );
  return found.rows[0] ?? { revision: one.revision, digest: one.digest };
}

/** One revision with its files; null: never stored. */
export async function loadRevision(tx: Tx, revision: string): Promise<StoredRevision | null> {
  const found = await tx.query<{
    revision: string;
    name: string;
    digest: string;
    files: Record<string, string>;
  }>("SELECT revision, name, digest, files FROM gate.policy_revisions WHERE revision = $1", [revision]);
  const row = found.rows[0];
  return row === undefined ? null : { ...row, files: new Map(Object.entries(row.files)) };
}

/** The full revisions that a name, a beginning or a bundle's own revision means, the newest first. */
export async function findRevisions(tx: Tx, text: string): Promise<readonly string[]> {
  const found = await tx.query<{ revision: string }>(
    `SELECT revision FROM gate.policy_revisions WHERE revision = $1 OR stated = $1 OR starts_with(revision, $1)
      ORDER BY revision <> $1, created_at DESC, revision LIMIT 20`,
    [text],
  );
  return found.rows.map((row) => row.revision);
}

interface ActivationColumns {
  readonly activation_id: bigint;
  readonly revision: string;
  readonly kind: ActivationRow["kind"];
  readonly previous_revision: string | null;
  readonly activated_at: Date;
  readonly activated_by: string;
  readonly note: string | null;
}

/** Newest first. */
export async function loadActivations(tx: Tx, limit: number): Promise<readonly ActivationRow[]> {
  const found = await tx.query<ActivationColumns>({
    name: "gate-policy-activations",
    text: `SELECT activation_id, revision, kind, previous_revision, activated_at, activated_by, note
      FROM gate.policy_activations ORDER BY activation_id DESC LIMIT $1`,
    values: [limit],
  });
  return found.rows.map((row) => ({
    activationId: row.activation_id,
    revision: row.revision,
    kind: row.kind,
    previousRevision: row.previous_revision,
    activatedAtMs: row.activated_at.getTime(),
    activatedBy: row.activated_by,
    note: row.note,
  }));
}

/** Adds an activation and returns its number. */
export async function insertActivation(tx: Tx, row: Omit<ActivationRow, "activationId">): Promise<bigint> {
  const added = await tx.query<{ activation_id: bigint }>(
    `INSERT INTO gate.policy_activations (revision, kind, previous_revision, activated_at, activated_by, note)
      VALUES ($1, $2, $3, $4, $5, $6) RETURNING activation_id`,
    [
      row.revision,
      row.kind,
      row.previousRevision,
      new Date(row.activatedAtMs).toISOString(),
      row.activatedBy,
      row.note,
    ],
  );
  return added.rows[0]?.activation_id ?? 0n;
}

/** All revisions, the newest first. */
export async function listRevisions(tx: Tx, limit: number): Promise<readonly ListedRevision[]> {
  const found = await tx.query<
    Omit<ListedRevision, "created_at" | "activated_at"> & {
      readonly created_at: Date;
      readonly activated_at: Date | null;
    }
  >(
    `SELECT r.revision, r.name, r.digest, r.created_at, r.created_by, a.activated_at, a.activated_by,
        coalesce(a.activation_id = (SELECT max(activation_id) FROM gate.policy_activations), false) AS is_active
      FROM gate.policy_revisions AS r
      LEFT JOIN LATERAL (SELECT activation_id, activated_at, activated_by FROM gate.policy_activations AS p
        WHERE p.revision = r.revision ORDER BY activation_id DESC LIMIT 1) AS a ON true
      ORDER BY r.created_at DESC, r.revision LIMIT $1`,
    [limit],
  );
  return found.rows.map((row) => ({
    ...row,
    created_at: row.created_at.toISOString(),
    activated_at: row.activated_at?.toISOString() ?? null,
  }));
}
