/** One partition between what is sealed and what the trail is known to hold. */
export interface OpenSpan {
  readonly topic: string;
  readonly partition: number;
  /** First offset that no block covers. */
  readonly from: bigint;
  /** The trail's own watermark: every row before it is committed, and none can appear below it any more. */
  readonly to: bigint;
}

/**
 * Takes as many offsets as fit into `maxOffsets`, partition by partition. Each span that comes out begins exactly where
 * the last seal ended, so that over time every offset is covered once: a late partition is sealed later, never skipped.
 */
export function planSpans(open: readonly OpenSpan[], maxOffsets: number): readonly OpenSpan[] {
  const sorted = [...open].sort((one, other) =>
    one.topic === other.topic ? one.partition - other.partition : one.topic < other.topic ? -1 : 1,
  );
  let left = BigInt(maxOffsets);
  return sorted.flatMap((span) => {
    const length = span.to - span.from;
    if (length <= 0n || left <= 0n) return [];
    const taken = length < left ? length : left;
    left -= taken;
    return [{ ...span, to: span.from + taken }];
  });
}
