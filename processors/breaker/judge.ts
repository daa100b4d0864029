import type { Measure, Threshold } from "./thresholds.ts";
import { bucketMs, freshMs } from "./thresholds.ts";
import type { Counts } from "./words.ts";
import { countNames } from "./words.ts";

/** What was counted in one bucket of one scope. */
export interface Bucket extends Counts {
  /** UTC milliseconds. */
  readonly startedMs: number;
}

/** A limit that was passed, with what it was seen on. */
export interface Crossing {
  readonly measure: Measure;
  readonly observed: bigint;
  readonly threshold: bigint;
  /** What it was taken from. */
  readonly samples: bigint;
  readonly windowMs: number;
  readonly windowEndedMs: number;
  readonly resetAfterMs: number | null;
}

/**
 * The first of a scope's thresholds that some window passes; null: none. Only windows that end later than a minute ago
 * count, and of them only what began after the scope's last reset.
 */
export function judgeScope(
  buckets: readonly Bucket[],
  thresholds: readonly Threshold[],
  { nowMs, resetMs }: { readonly nowMs: number; readonly resetMs: number | null },
): Crossing | null {
  const counted = buckets
    .filter(({ startedMs }) => resetMs === null || startedMs >= resetMs)
    .sort((left, right) => left.startedMs - right.startedMs);
  for (const threshold of thresholds) {
    for (const { startedMs } of counted) {
      const windowEndedMs = startedMs + bucketMs;
      if (windowEndedMs <= nowMs - freshMs) continue;
      const inWindow = counted.filter(
        (one) => one.startedMs >= windowEndedMs - threshold.windowMs && one.startedMs <= startedMs,
      );
      const seen = measure(threshold, inWindow);
      if (seen === null || seen.samples < threshold.minCount || seen.observed <= threshold.limit) continue;
      return {
        measure: threshold.measure,
        ...seen,
        threshold: threshold.limit,
        windowMs: threshold.windowMs,
        windowEndedMs,
        resetAfterMs: threshold.resetAfterMs,
      };
    }
  }
  return null;
}

const minuteMs = 60_000n;
const perMille = 1_000n;

/** What a window shows; null: nothing that could be told from it. */
function measure(
  { measure: name, windowMs }: Threshold,
  inWindow: readonly Bucket[],
): { readonly observed: bigint; readonly samples: bigint } | null {
  const sum = sumOf(inWindow);
  switch (name) {
    case "fan_out": {
      // An agent that is started is told of twice where its runtime tells both: by the call and by the start itself.
      const begun = sum.starts > sum.spawns ? sum.starts : sum.spawns;
      return { observed: begun, samples: begun };
    }
    case "cost_rate":
      return { observed: (sum.cost_micros * minuteMs) / BigInt(windowMs), samples: sum.priced };
    case "failure_rate":
      return share(sum.failures, sum.results);
    case "denial_rate":
      return share(sum.denials, sum.decisions);
    case "lag": {
      const [first, last] = [inWindow[0], inWindow.at(-1)];
      if (first === undefined || last === undefined || first === last) return null;
      const [before, now] = [meanWait(first), meanWait(last)];
      // While a backlog is worked off, what was recorded later waited less: that is an outage's end, not a storm.
      return now < before ? null : { observed: now, samples: sum.events };
    }
  }
}

function share(part: bigint, whole: bigint): { readonly observed: bigint; readonly samples: bigint } | null {
  return whole === 0n ? null : { observed: (part * perMille) / whole, samples: whole };
}

function meanWait({ wait_ms, events }: Bucket): bigint {
  return events === 0n ? 0n : wait_ms / events;
}

/** Adds counts up. */
export function sumOf(all: readonly Counts[]): Counts {
  const sum = Object.fromEntries(countNames.map((name) => [name, 0n])) as Record<keyof Counts, bigint>;
  for (const one of all) for (const name of countNames) sum[name] += one[name];
  return sum;
}
