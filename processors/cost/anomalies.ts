/** What is unusual: amounts are millionths, the history is of windows of the same length. */
export interface Unusual {
  readonly observedMicros: bigint;
  readonly expectedMicros: bigint;
}

/** Fewer windows are no history: the first week of a scope is never unusual. */
const minWindows = 7;
/** Deviations beyond which spending is unusual: six, since spending is skewed and an alarm a week is ignored. */
const deviations = 6n;
/** A tenth of the median at least: a scope that spends the same every day is not alarmed by a cent more. */
const leastShare = 10n;
/** Below a dollar nobody has to look. */
const leastMicros = 1_000_000n;

/**
 * Whether a window's spending is far above its scope's own history: above the median by more than six median absolute
 * deviations (scaled to a normal distribution's deviation). Medians are not moved by the few windows that were unusual
 * themselves. Windows without spending are no part of the history.
 */
export function judgeWindow(history: readonly bigint[], observedMicros: bigint): Unusual | null {
  const active = history.filter((micros) => micros > 0n);
  if (active.length < minWindows) return null;
  const median = toMedian(active);
  // 1.4826 × the median absolute deviation, in whole millionths.
  const deviation =
    (toMedian(active.map((micros) => (micros > median ? micros - median : median - micros))) * 14_826n) /
    10_000n;
  const share = median / leastShare;
  const spread = deviation > share ? deviation : share;
  const isFar = observedMicros > median + deviations * spread;
  return isFar && observedMicros >= leastMicros ? { observedMicros, expectedMicros: median } : null;
}

/** The middle one, or the mean of the two middle ones, rounded down. */
function toMedian(values: readonly bigint[]): bigint {
  const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0n;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0n) + upper) / 2n;
}
