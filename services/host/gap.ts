import type { GapCause } from "../../schemas/generated/types.ts";

/** Records between where a consumer is and where the log can go on. */
export interface Gap {
  readonly cause: Exclude<GapCause, "unknown">;
  readonly expectedOffset: bigint;
  readonly foundOffset: bigint;
}

/** What the broker says of one partition right now. */
export interface LogState {
  readonly earliest: bigint;
  readonly latest: bigint;
  /** Kafka's id of the topic; null when the broker gives none. */
  readonly topicId?: string | null;
}

/**
 * Compares a position with what the log holds; null when every record from the position on is there. `knownTopicId` is the
 * topic that the position belongs to: in a log that was made anew no offset means what it did, however long the log is.
 */
export function findGap(position: bigint, ends: LogState, knownTopicId: string | null = null): Gap | null {
  const { topicId = null } = ends;
  if (knownTopicId !== null && topicId !== null && topicId !== knownTopicId) {
    return { cause: "topic_recreated", expectedOffset: position, foundOffset: ends.earliest };
  }
  if (ends.earliest > position) {
    return { cause: "retention", expectedOffset: position, foundOffset: ends.earliest };
  }
  // The log ends before what was already read: the topic was made anew, or lost its tail.
  if (ends.latest < position) {
    return { cause: "log_end_below_position", expectedOffset: position, foundOffset: ends.latest };
  }
  return null;
}
