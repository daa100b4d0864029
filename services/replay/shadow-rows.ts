import { Fault } from "../../schemas/faults.ts";
import type { Tx } from "../platform/postgres.ts";
import type { LogRange, Shadow, StoredDifference } from "./shadow.ts";

/** Who does something to a shadow, as a verified token says. */
export interface Actor {
  readonly person: string;
  readonly tenant: string;
  readonly issuer: string;
}

/** What is recorded of everything that people do to shadows. */
export interface Act {
  readonly shadow: string;
  readonly act: "started" | "resumed" | "accepted" | "promoted" | "dropped" | "evidence_read";
  readonly reason?: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

interface ShadowRow {
  readonly name: string;
  readonly processor: string;
  readonly processor_version: string;
  readonly version_file: string | null;
  readonly version_digest: string | null;
  readonly migrations_dir: string | null;
  readonly compared_with: Shadow["comparedWith"];
  readonly state: Shadow["state"];
  readonly groups: string[];
  readonly difference: StoredDifference | null;
  readonly compared_at: Date | null;
  readonly accepted_at: Date | null;
  readonly accepted_by: string | null;
  readonly started_at: Date;
  readonly started_by: string;
  readonly ranges: readonly { topic: string; partition: number; from: string; to: string }[];
}

/** Writes down who did what, in the transaction in which it is done. */
export async function recordAct(tx: Tx, actor: Actor, act: Act): Promise<void> {
  await tx.query(
    `INSERT INTO replay.acts (shadow, act, person, tenant, issuer, reason, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [
      act.shadow,
      act.act,
      actor.person,
      actor.tenant,
      actor.issuer,
      act.reason ?? null,
      JSON.stringify(act.detail),
    ],
  );
}

/** Every shadow, or the one of a name; the newest first. */
export async function loadShadows(tx: Tx, name?: string): Promise<readonly Shadow[]> {
  const { rows } = await tx.query<ShadowRow>(
    `SELECT s.*, coalesce((SELECT json_agg(json_build_object('topic', r.topic, 'partition', r.partition,
          'from', r.from_offset::text, 'to', r.to_offset::text) ORDER BY r.topic, r.partition)
        FROM replay.ranges AS r WHERE r.shadow = s.name), '[]') AS ranges
      FROM replay.shadows AS s WHERE $1::text IS NULL OR s.name = $1 ORDER BY s.started_at DESC, s.name`,
    [name ?? null],
  );
  return rows.map(toShadow);
}

/** Throws USAGE when there is none of this name. */
export async function loadShadow(tx: Tx, name: string): Promise<Shadow> {
  const [found] = await loadShadows(tx, name);
  if (found === undefined)
    throw new Fault("USAGE", `there is no shadow \`${name}\`; \`fabric replay list\` shows them`);
  return found;
}

export async function insertShadow(
  tx: Tx,
  one: Pick<
    Shadow,
    | "name"
    | "processor"
    | "processorVersion"
    | "versionFile"
    | "versionDigest"
    | "migrationsDir"
    | "comparedWith"
    | "ranges"
    | "startedBy"
  >,
): Promise<void> {
  await tx.query(
    `INSERT INTO replay.shadows (name, processor, processor_version, version_file, version_digest, migrations_dir,
        compared_with, started_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      one.name,
      one.processor,
      one.processorVersion,
      one.versionFile,
      one.versionDigest,
      one.migrationsDir,
      one.comparedWith,
      one.startedBy,
    ],
  );
  await saveRanges(tx, one.name, one.ranges);
}

/** Stores ranges; of those that are there the end moves. */
export async function saveRanges(tx: Tx, name: string, ranges: readonly LogRange[]): Promise<void> {
  await tx.query(
    `INSERT INTO replay.ranges (shadow, topic, partition, from_offset, to_offset)
      SELECT $1, * FROM unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[])
      ON CONFLICT (shadow, topic, partition) DO UPDATE SET to_offset = excluded.to_offset`,
    [
      name,
      ranges.map(({ topic }) => topic),
      ranges.map(({ partition }) => partition),
      ranges.map(({ from }) => from),
      ranges.map(({ to }) => to),
    ],
  );
}

export async function setState(tx: Tx, name: string, state: Shadow["state"]): Promise<void> {
  await tx.query("UPDATE replay.shadows SET state = $2 WHERE name = $1", [name, state]);
}

export async function setGroups(tx: Tx, name: string, groups: readonly string[]): Promise<void> {
  await tx.query("UPDATE replay.shadows SET groups = $2 WHERE name = $1", [name, groups]);
}

/** Keeps the counts of a comparison; what was accepted before is accepted no more unless it says the same. */
export async function saveDifference(tx: Tx, name: string, difference: StoredDifference): Promise<void> {
  await tx.query(
    `UPDATE replay.shadows SET difference = $2::jsonb, compared_at = clock_timestamp(),
        accepted_at = CASE WHEN difference = $2::jsonb THEN accepted_at END,
        accepted_by = CASE WHEN difference = $2::jsonb THEN accepted_by END,
        accepted_reason = CASE WHEN difference = $2::jsonb THEN accepted_reason END
      WHERE name = $1`,
    [name, JSON.stringify(difference)],
  );
}

export async function saveAcceptance(tx: Tx, name: string, person: string, reason: string): Promise<void> {
  await tx.query(
    `UPDATE replay.shadows SET accepted_at = clock_timestamp(), accepted_by = $2, accepted_reason = $3 WHERE name = $1`,
    [name, person, reason],
  );
}

export async function deleteShadow(tx: Tx, name: string): Promise<void> {
  await tx.query("DELETE FROM replay.shadows WHERE name = $1", [name]);
}

function toShadow(row: ShadowRow): Shadow {
  return {
    name: row.name,
    processor: row.processor,
    processorVersion: row.processor_version,
    versionFile: row.version_file,
    versionDigest: row.version_digest,
    migrationsDir: row.migrations_dir,
    comparedWith: row.compared_with,
    state: row.state,
    groups: row.groups,
    difference: row.difference,
    comparedAt: row.compared_at,
    acceptedAt: row.accepted_at,
    acceptedBy: row.accepted_by,
    startedAt: row.started_at,
    startedBy: row.started_by,
    ranges: row.ranges.map(({ topic, partition, from, to }) => ({
      topic,
      partition,
      from: BigInt(from),
      to: BigInt(to),
    })),
  };
}
