import type { StackHandle } from "../../services/stack/stack.ts";
import type { BenchDatabase } from "./bench-database.ts";

/** What our figure stands beside: another product, the bare floor below ours, or a number of the design. */
export type Against = "peer" | "limit" | "budget";

/** One line of the report. Every number of it comes from the same run. */
export interface Row {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly against: Against;
  /** What the other number belongs to. */
  readonly other: string;
  readonly theirs: number;
  /** Ours divided by theirs: the median of the repetitions' own ratios. */
  readonly ratio: number;
  /** Lowest and highest of the repetitions' ratios. */
  readonly ratioRange?: readonly [number, number];
  readonly target?: Target;
  readonly command: string;
  readonly note: string;
}

/** Which ratio is good enough. */
export interface Target {
  readonly better: "higher" | "lower";
  readonly ratio: number;
}

/** Sizes of a run; smaller ones for trying, the defaults for the report. */
export interface Sizes {
  readonly rows: number;
  readonly repetitions: number;
  readonly seconds: number;
  readonly minutes: number;
}

/** What every figure gets: servers on demand, progress, and a place for what must end. */
export interface Bench {
  readonly projectDir: string;
  readonly sizes: Sizes;
  readonly command: string;
  progress(line: string): void;
  /** The servers, started at the first call. */
  stack(): Promise<StackHandle>;
  /** A migrated database of this run's own. */
  database(name: string): Promise<BenchDatabase>;
  /** Registers what has to end, last first, however the run ends. */
  onEnd(end: () => Promise<unknown>): void;
}

/** A figure: measures and returns its rows; throws only when something broke, was lost or came twice. */
export type Figure = (bench: Bench) => Promise<Row[]>;

/** Builds a row from one number per repetition on each side. */
export function toRow(
  row: Omit<Row, "ours" | "theirs" | "ratio" | "ratioRange">,
  ours: readonly number[],
  theirs: readonly number[],
): Row {
  const ratios = ours.map((value, index) => value / (theirs[index] ?? Number.NaN)).sort((a, b) => a - b);
  return {
    ...row,
    ours: median(ours),
    theirs: median(theirs),
    ratio: median(ratios),
    ratioRange: [ratios[0] ?? Number.NaN, ratios.at(-1) ?? Number.NaN],
  };
}

/** The middle value; the mean of the two middle ones of an even number. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value below which `share` of the values lie, by nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Whether a row reaches its target; null without one. */
export function isMet(row: Row): boolean | null {
  if (row.target === undefined) return null;
  return row.target.better === "higher" ? row.ratio >= row.target.ratio : row.ratio <= row.target.ratio;
}
