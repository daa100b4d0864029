import type { GapCause } from "../../schemas/generated/types.ts";

/** Records between where a consumer is and where the log can go on. */
export interface Gap {
  readonly cause: Exclude<GapCause, "unknown">;
  readonly expectedOffset: bigint;
  readonly foundOffset: bigint;
}

/** Compares a position with what the log holds; null when every record from the position on is there. */
export function findGap(
  position: bigint,
  ends: { readonly earliest: bigint; readonly latest: bigint },
): Gap | null {
  if (ends.earliest > position) {
    return { cause: "retention", expectedOffset: position, foundOffset: ends.earliest };
  }
  // The log ends before what was already read: the topic was made anew, or lost its tail.
  if (ends.latest < position) {
    return { cause: "log_end_below_position", expectedOffset: position, foundOffset: ends.latest };
  }
  return null;
}
