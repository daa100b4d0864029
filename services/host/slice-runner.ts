import type { Envelope } from "../../schemas/envelope.ts";
import type { LogRecord } from "../platform/kafka-consumer.ts";
import { isRecordFault, mayBeRecordsOwn } from "../platform/classify.ts";
import type { Step, Work } from "./batch-steps.ts";
import type { HostMetrics } from "./host-metrics.ts";
import type { HostStore, Position } from "./host-store.ts";
import { toLetter } from "./letter.ts";
import type { ReadRecord } from "./records.ts";
import { StepFault, runSlice } from "./run-slice.ts";

/** Most records that one transaction takes: beyond it a batch gains nothing and a retry costs more. */
export const sliceMaxRecords = 2_000;
/** After so many transient failures of one slice in a row it is tried in halves: one record may be the culprit. */
const splitAfterFailures = 3;
/** A single record that failed so often while its neighbours can go through has spent its budget. */
const recordBudget = 5;
/** How many neighbours are tried, and undone, to tell a bad record from a bad day. */
const trialMaxRecords = 20;

/** How often the work at one offset has failed for reasons that may pass. */
export interface FailureCount {
  offset: bigint;
  /** Runs of any slice that begins there. */
  failures: number;
  /** Runs of the one record there, alone; the host waits between them. */
  alone: number;
}

/** A count that begins anew at `offset`. */
export const noFailures = (offset: bigint): FailureCount => ({ offset, failures: 0, alone: 0 });

export interface SliceRunnerOptions {
  readonly store: Pick<HostStore, "prepareLetters" | "transaction">;
  readonly steps: readonly Step[];
  readonly metrics: HostMetrics;
  readonly toWork: (position: Position, records: readonly ReadRecord[], nextOffset: bigint) => Work;
  /** Reads a record again, for the letter about it. */
  readonly eventOf: (record: LogRecord) => Promise<Envelope | null>;
  readonly nowMs: () => number;
  /** Called when a slice is committed: the position has moved to `work.nextOffset`. */
  readonly afterSlice: (work: Work) => void;
  /** Asked before each slice: false once the partition is no longer ours, or the host stops. */
  readonly mayGoOn: () => boolean;
}

/**
 * Runs records through the steps, as few transactions as it can. A poison slice is halved until the bad record stands
 * alone and is buried. What may pass is thrown as a `StepFault`; what was committed before it stays.
 */
export function createSliceRunner(options: SliceRunnerOptions): {
  run(
    start: Position,
    records: readonly ReadRecord[],
    nextOffset: bigint,
    count: FailureCount,
  ): Promise<void>;
} {
  const { store, steps, metrics, toWork, eventOf, nowMs, afterSlice, mayGoOn } = options;

  async function once(
    position: Position,
    records: readonly ReadRecord[],
    nextOffset: bigint,
  ): Promise<Position> {
    const startedMs = nowMs();
    const work = toWork(position, records, nextOffset);
    await runSlice(work, steps, store);
    report(work, metrics, nowMs() - startedMs);
    afterSlice(work);
    return { ...position, nextOffset };
  }

  async function bury(
    position: Position,
    read: ReadRecord,
    nextOffset: bigint,
    failed: StepFault,
    attempts: number,
  ): Promise<Position> {
    const event = read.kind === "event" ? await eventOf(read.record) : null;
    // An event goes the way of one whose projection threw: it is claimed, and only who claims it writes the letter.
    const events =
      read.kind === "event" && event !== null
        ? [{ ...read, changes: [], thrown: { event, fault: failed.fault, attempts } }]
        : [];
    const work = toWork(position, events, nextOffset);
    if (events.length === 0)
      work.letters.push(toLetter(read.record, event, failed.fault, attempts, work.letterContext));
    await runSlice(work, steps, store);
    report(work, metrics, 0);
    afterSlice(work);
    return { ...position, nextOffset };
  }

  /** Whether these records could go through now; undone at the end. */
  async function succeeds(position: Position, records: readonly ReadRecord[]): Promise<boolean> {
    const last = records.at(-1);
    const nextOffset = last === undefined ? position.nextOffset : last.record.offset + 1n;
    try {
      await runSlice(toWork(position, records, nextOffset), steps, store, { dryRun: true });
      return true;
    } catch (error) {
      return error instanceof StepFault && isRecordFault(error.fault);
    }
  }

  return {
    async run(start, all, batchEnd, count) {
      let position = start;

      async function go(from: number, to: number): Promise<void> {
        if (!mayGoOn()) return;
        const records = all.slice(from, to);
        const nextOffset = to === all.length ? batchEnd : (records.at(-1)?.record.offset ?? 0n) + 1n;
        try {
          position = await once(position, records, nextOffset);
          Object.assign(count, noFailures(position.nextOffset));
          return;
        } catch (error) {
          if (!(error instanceof StepFault)) throw error;
          const single = records.length === 1;
          const [only] = records;
          if (isRecordFault(error.fault)) {
            if (single && only !== undefined) {
              position = await bury(position, only, nextOffset, error, 1);
              return;
            }
          } else {
            if (error.fault.kind !== "transient") throw error;
            if (count.offset !== position.nextOffset) Object.assign(count, noFailures(position.nextOffset));
            count.failures += 1;
            if (single && only !== undefined) {
              // INVARIANT: only what may be the record's own counts: a record whose topic or schema is still to be made
              // waits for it (slice-runner.test.ts "waits at a record for …, however its neighbours fare").
              if (mayBeRecordsOwn(error.fault)) count.alone += 1;
              const neighbours = all.slice(to, to + trialMaxRecords);
              // Without a neighbour nothing waits behind the record: it is tried until one comes.
              const spent =
                count.alone >= recordBudget &&
                neighbours.length > 0 &&
                (await succeeds(position, neighbours));
              if (!spent) throw error;
              position = await bury(position, only, nextOffset, error, count.alone);
              Object.assign(count, noFailures(position.nextOffset));
              return;
            }
            // An empty slice writes the watermark: when that fails too, it is the database and no record.
            if (count.failures < splitAfterFailures || !(await succeeds(position, []))) throw error;
          }
          const middle = from + Math.ceil(records.length / 2);
          await go(from, middle);
          await go(middle, to);
        }
      }

      if (all.length === 0) {
        position = await once(position, [], batchEnd);
        return;
      }
      for (let from = 0; from < all.length; from += sliceMaxRecords) {
        await go(from, Math.min(all.length, from + sliceMaxRecords));
      }
    },
  };
}

function report(work: Work, metrics: HostMetrics, tookMs: number): void {
  const dead = work.letters.filter(({ kind }) => kind === "dead").length;
  if (work.records.length > 0) metrics.batch(work.records.length, tookMs);
  metrics.processed(work.position, Math.max(0, work.claimed.length - dead));
  if (work.duplicates > 0) metrics.duplicates(work.position, work.duplicates, "inbox");
  for (const read of work.records) if (read.kind === "skipped") metrics.skipped(work.position, 1, read.why);
  for (const letter of work.letters) metrics.letters(letter.kind, letter.fault.code);
  if (work.emitted > 0) metrics.emitted(work.emitted);
  if (work.held > 0) metrics.held(work.held);
}
