import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GapCause, ResumeChoice } from "../../schemas/generated/types.ts";
import { newUuidV7 } from "../platform/ids.ts";
import type { PartitionEnds } from "../platform/kafka-offsets.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";
import { toDeed, toReason } from "./recovery-event.ts";

/** A partition that stands still for a person. */
export interface StoppedPartition {
  readonly consumer: string;
  readonly topic: string;
  readonly partition: number;
  readonly cause: GapCause;
  readonly stopped_at: Date;
  readonly stopped_offset: bigint;
  /** What the log holds now; null when the topic does not exist. */
  readonly log_start: bigint | null;
  readonly log_end: bigint | null;
}

interface StoppedRow {
  readonly consumer: string;
  readonly topic: string;
  readonly partition: number;
  readonly cause: GapCause;
  readonly stopped_at: Date;
  readonly stopped_offset: bigint;
}

/** What waits for hosts of another version (`promoted:2`) waits for no person. */
const stoppedText = `SELECT processor AS consumer, topic, partition, stopped_cause AS cause, stopped_at,
    next_offset AS stopped_offset
  FROM host.watermarks WHERE stopped_cause IS NOT NULL AND stopped_cause NOT LIKE 'promoted:%'`;

/** All that stand still, the longest first. */
export async function listGaps(deps: RecoveryDeps): Promise<readonly StoppedPartition[]> {
  const { rows } = await deps.database.query<StoppedRow>(
    `${stoppedText} ORDER BY stopped_at, processor, topic, partition`,
  );
  const ends = new Map<string, readonly PartitionEnds[]>();
  for (const topic of new Set(rows.map((row) => row.topic))) ends.set(topic, await endsOf(deps, topic));
  return rows.map((row) => {
    const end = ends.get(row.topic)?.find(({ partition }) => partition === row.partition);
    return { ...row, log_start: end?.earliest ?? null, log_end: end?.latest ?? null };
  });
}

/** How a person wants a partition to go on. */
export type Choice =
  { readonly kind: "log_start" | "log_end" } | { readonly kind: "offset"; readonly offset: bigint };

/** Where a partition goes on. */
export interface ResumedPartition extends StoppedRow {
  readonly choice: ResumeChoice;
  readonly resumed_offset: bigint;
}

/**
 * Lets a stopped partition go on where a person says, knowing that what was lost stays lost. Throws GAP_UNKNOWN when it is
 * not stopped, TOPIC_MISSING when there is nothing to go on in, REQUEST_INVALID for an offset that the log does not hold.
 * INVARIANT: test/integration/gaps.test.ts "goes on where a person says, and the choice is an event".
 */
export async function resumePartition(
  deps: RecoveryDeps,
  target: { readonly consumer: string; readonly topic: string; readonly partition: number },
  choice: Choice,
  how: { readonly by: string; readonly reason: string },
): Promise<ResumedPartition> {
  const { consumer, topic, partition } = target;
  // Outside the transaction: the broker may take its time. The id comes first, so that a topic that is made anew in
  // between is found out by the host.
  const topicId = (await deps.offsets.existing([topic])).get(topic);
  const end = (await endsOf(deps, topic)).find((one) => one.partition === partition);
  const resumed = await deps.database.transaction(async (tx) => {
    const found = await tx.query<StoppedRow>(
      `${stoppedText} AND processor = $1 AND topic = $2 AND partition = $3 FOR UPDATE`,
      [consumer, topic, partition],
    );
    const [row] = found.rows;
    if (row === undefined)
      throw new Fault("GAP_UNKNOWN", `\`${consumer}\` does not stand still in ${topic}/${String(partition)}`);
    if (end === undefined || topicId === undefined) {
      throw new Fault(
        "TOPIC_MISSING",
        `\`${topic}\`/${String(partition)}: create it with \`fabric topics apply\`, then resume`,
      );
    }
    const offset =
      choice.kind === "offset" ? choice.offset : choice.kind === "log_end" ? end.latest : end.earliest;
    if (offset < end.earliest || offset > end.latest) {
      throw new Fault(
        "REQUEST_INVALID",
        `the log holds ${String(end.earliest)} to ${String(end.latest)}; ${String(offset)} would be a gap again`,
      );
    }
    await tx.query({
      name: "recovery-resume",
      text: `UPDATE host.watermarks SET next_offset = $4, epoch = epoch + 1, topic_id = $5, stopped_cause = NULL,
          stopped_at = NULL, updated_at = clock_timestamp()
        WHERE processor = $1 AND topic = $2 AND partition = $3`,
      values: [consumer, topic, partition, offset, topicId],
    });
    const reason = toReason(how.reason);
    const event = toDeed(
      deps,
      draft("fabric.gap.resumed", {
        consumer,
        source_topic: topic,
        source_partition: partition,
        cause: row.cause,
        choice: choice.kind,
        stopped_offset: row.stopped_offset,
        resumed_offset: offset,
        resumed_by: how.by,
        reason,
      }),
      { by: how.by, correlationId: `cor_${newUuidV7(deps.clock.nowMs())}` },
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return { ...row, choice: choice.kind, resumed_offset: offset };
  });
  notifyOutbox(deps.database);
  return resumed;
}

async function endsOf(deps: RecoveryDeps, topic: string): Promise<readonly PartitionEnds[]> {
  try {
    return await deps.offsets.ends(topic);
  } catch (error) {
    if (error instanceof Fault && error.code === "TOPIC_MISSING") return [];
    throw error;
  }
}
