import { createHash } from "node:crypto";
import { Fault } from "../../schemas/faults.ts";
import type { TopicPartition } from "../platform/kafka-consumer.ts";

/** A part of one partition: offsets from (inclusive) to (exclusive). */
export interface LogRange extends TopicPartition {
  readonly from: bigint;
  readonly to: bigint;
}

/** Which of a shadow's two runs: the version in question, or the one that ships, run over the same events. */
export type Side = "candidate" | "baseline";

/** What a shadow is compared with. */
export type ComparedWith = "live" | "baseline";

/** A shadow as `replay.shadows` and `replay.ranges` keep it. */
export interface Shadow {
  readonly name: string;
  readonly processor: string;
  readonly processorVersion: string;
  readonly versionFile: string | null;
  readonly versionDigest: string | null;
  readonly migrationsDir: string | null;
  readonly comparedWith: ComparedWith;
  readonly state: "running" | "ready" | "promoted";
  readonly groups: readonly string[];
  readonly difference: StoredDifference | null;
  readonly comparedAt: Date | null;
  readonly acceptedAt: Date | null;
  readonly acceptedBy: string | null;
  readonly startedAt: Date;
  readonly startedBy: string;
  readonly ranges: readonly LogRange[];
}

/** Counts of one table's rows that differ. */
export interface TableCounts {
  readonly table: string;
  readonly onlyLive: number;
  readonly onlyShadow: number;
  readonly changed: number;
}

/** The counts of a comparison, as they are stored and accepted. */
export interface StoredDifference {
  readonly tables: readonly TableCounts[];
  /** Records that the shadow set aside, and the other side did not. */
  readonly newLetters: number;
}

/** Where one run has its tables, and the one role that may write them. */
export interface RunNames {
  readonly projection: string;
  readonly host: string;
  readonly role: string;
}

const shadowName = /^[a-z][a-z0-9-]{0,30}$/;

/** Throws USAGE for a name that cannot be part of a schema's. */
export function assertShadowName(name: string): void {
  if (!shadowName.test(name))
    throw new Fault(
      "USAGE",
      `\`${name}\` is no name for a shadow: lower case letters, digits and -, at most 31, a letter first`,
    );
}

/**
 * Schemas and role of a run. Roles belong to the cluster, so the database is part of the role's name. No shadow's name
 * has an underscore: the parts cannot be mistaken for each other.
 */
export function toRunNames(name: string, side: Side, database: string): RunNames {
  const projection = side === "candidate" ? `shadow_${name}` : `shadow_${name}_base`;
  const place = createHash("sha256").update(database).digest("hex").slice(0, 8);
  return { projection, host: `${projection}_host`, role: `${projection}_${place}` };
}

/** The runs that a shadow consists of. */
export function sidesOf(shadow: Pick<Shadow, "comparedWith">): readonly Side[] {
  return shadow.comparedWith === "live" ? ["candidate"] : ["candidate", "baseline"];
}

/** `topic/partition`. */
export const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${String(partition)}`;

/** How many offsets the ranges span; records that compaction removed are counted as if they were there. */
export const spanOf = (ranges: readonly LogRange[]): bigint =>
  ranges.reduce((sum, { from, to }) => sum + (to - from), 0n);
