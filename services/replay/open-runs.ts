import { setTimeout as sleep } from "node:timers/promises";
import { Fault } from "../../schemas/faults.ts";
import type { Database } from "../platform/postgres.ts";
import type { Positions } from "./positions.ts";
import { isReached, loadPositions, loadStops, placeRun, toProgress } from "./positions.ts";
import type { LogRange, RunNames, Side } from "./shadow.ts";

const pollMs = 200;

/** A run that reads; its progress is in its own watermarks. */
export interface RunningRun {
  /** Moves the ends of its ranges further out. */
  extend(ranges: readonly LogRange[]): void;
  /** Why it does not go on for now; empty while it does. */
  reasons(): readonly string[];
  /** Rejects when the run ends by itself. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

/** How far the runs of a shadow are. */
export interface RunProgress {
  readonly done: bigint;
  readonly all: bigint;
  /** Why something does not go on for now. */
  readonly reasons: readonly string[];
}

export interface OpenRunsOptions {
  readonly database: Database;
  readonly processor: string;
  readonly sides: readonly { readonly side: Side; readonly names: RunNames }[];
  /** Starts the process of one run. */
  readonly open: (side: Side, ranges: readonly LogRange[]) => Promise<RunningRun>;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: RunProgress) => void;
}

/** The running runs of one shadow. They are opened when something is to be read, and stay until `close`. */
export class OpenRuns {
  readonly #options: OpenRunsOptions;
  readonly #open = new Map<Side, RunningRun>();

  constructor(options: OpenRunsOptions) {
    this.#options = options;
  }

  /**
   * Lets every run read up to the ends of these ranges. Throws GAP_FOUND when records are gone that it has not read, and
   * OVERLOADED when it takes longer than `deadlineMs`.
   */
  async reach(ranges: readonly LogRange[], deadlineMs = Infinity): Promise<void> {
    const { database, processor, sides, signal, onProgress } = this.#options;
    for (const { names } of sides) await placeRun(database, names.host, processor, ranges);
    const untilMs = performance.now() + deadlineMs;
    for (let isFirst = true; ; isFirst = false) {
      signal.throwIfAborted();
      const positions = await this.positions();
      const progress = sides.map(({ side }) => toProgress(ranges, positions.get(side) ?? new Map()));
      onProgress({
        done: progress.reduce((sum, one) => sum + one.done, 0n),
        all: progress.reduce((sum, one) => sum + one.all, 0n),
        reasons: [...this.#open.values()].flatMap((one) => one.reasons()),
      });
      const left = sides.filter(({ side }) => !isReached(ranges, positions.get(side) ?? new Map()));
      if (left.length === 0) return;
      for (const { side, names } of left) {
        const running = this.#open.get(side);
        if (running === undefined) this.#open.set(side, await this.#options.open(side, ranges));
        else if (isFirst) running.extend(ranges);
        const stops = await loadStops(database, names.host, processor);
        if (stops.length > 0) throw new Fault("GAP_FOUND", stops.join("; "));
      }
      if (performance.now() > untilMs)
        throw new Fault(
          "OVERLOADED",
          "the live processor reads faster than its shadow; try again when there is less to read",
        );
      await Promise.race([
        sleep(pollMs, undefined, { signal }),
        ...[...this.#open.values()].map(({ failed }) => failed),
      ]);
    }
  }

  /** Where each run stands. */
  async positions(): Promise<ReadonlyMap<Side, Positions>> {
    const { database, processor, sides } = this.#options;
    const found = new Map<Side, Positions>();
    for (const { side, names } of sides)
      found.set(side, await loadPositions(database, names.host, processor));
    return found;
  }

  /** Opens the runs before there is something to read: what comes then is read at once. */
  async warmUp(ranges: readonly LogRange[]): Promise<void> {
    for (const { side } of this.#options.sides) {
      if (!this.#open.has(side)) this.#open.set(side, await this.#options.open(side, ranges));
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((one) => one.stop()));
    this.#open.clear();
  }
}
