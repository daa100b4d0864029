import type { Processor } from "../../processors/kit/processor.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Clock } from "../platform/clock.ts";
import type { BatchControl } from "../platform/kafka-consumer.ts";
import type { Log } from "../platform/log.ts";
import { backoffMs } from "../platform/backoff.ts";
import type { FanOutGuard } from "./fan-out-guard.ts";
import type { HostMetrics } from "./host-metrics.ts";
import type { Position } from "./host-store.ts";
import type { EventDecoder, ReadRecord } from "./records.ts";
import { readRecords } from "./records.ts";
import type { LetterEvent } from "./redrive-steps.ts";
import { redriveSteps } from "./redrive-steps.ts";
import type { Redrive, RedriveStore, WaitingLetter, WaitingLetters } from "./redrive-store.ts";
import { StepFault } from "./run-slice.ts";
import type { FailureCount } from "./slice-runner.ts";
import { createSliceRunner, noFailures } from "./slice-runner.ts";

export interface RedriverOptions {
  readonly processor: Processor;
  readonly store: RedriveStore;
  readonly decoder: EventDecoder;
  /** The processor's own: what a redrive emits counts with the rest. */
  readonly guard: FanOutGuard;
  readonly metrics: HostMetrics;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  readonly owner: string;
  readonly environment: string;
  readonly topicPrefix: string;
  readonly wakeRelay?: () => void;
  /** How often an idle one looks for work. */
  readonly pollMs?: number;
}

/** A person who waits sees the first letter move within this time. */
const standardPollMs = 1_000;
/** Letters in one batch: a second of the fastest rate that anybody asks for is a few of them. */
const batchMaxLetters = 500;
/** Longest single sleep, so that a stop is prompt. */
const sleepMaxMs = 1_000;

/** Sends letters of one processor through it again, and through nobody else: batches of the vault's bytes, one at a time. */
export class Redriver {
  readonly #options: RedriverOptions;
  readonly #typeOf: ReadonlyMap<string, EventType>;
  readonly #counts = new Map<string, FailureCount>();
  #stopping = false;
  #wake: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: RedriverOptions) {
    this.#options = options;
    this.#typeOf = new Map(options.processor.topics.map((type) => [options.topicPrefix + type, type]));
  }

  start(): void {
    this.#running = this.#loop();
  }

  /** Ends the batch in hand, with its commit. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wake?.();
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { pollMs = standardPollMs, random, log } = this.#options;
    let failures = 0;
    while (!this.#stopping) {
      try {
        const waitMs = await this.#turn();
        failures = 0;
        if (waitMs > 0) await this.#sleep(waitMs);
      } catch (error) {
        failures += 1;
        const waitMs = Math.max(pollMs, backoffMs(failures, random()));
        log.warn({ err: error, waitMs }, "letters cannot be redriven, trying again");
        await this.#sleep(waitMs);
      }
    }
  }

  /** One batch of the oldest redrive; how long to wait for the next. */
  async #turn(): Promise<number> {
    const { store, owner, pollMs = standardPollMs, random } = this.#options;
    const redrive = await store.lease(owner);
    if (redrive === null) return pollMs;
    if (redrive.dueInMs > 0) return Math.min(redrive.dueInMs, sleepMaxMs);
    let failures = 1;
    try {
      const waiting = await store.next(redrive, Math.min(batchMaxLetters, redrive.perSecond));
      if (waiting === null) {
        this.#counts.clear();
        await store.finish(redrive);
        return 0;
      }
      const key = `${redrive.id}/${waiting.topic}/${String(waiting.partition)}`;
      const count = this.#counts.get(key) ?? noFailures(0n);
      this.#counts.set(key, count);
      try {
        await this.#batch(redrive, waiting, count);
      } finally {
        failures = Math.max(1, count.failures);
      }
      return 0;
    } catch (error) {
      // A dependency is away, or a race was lost: nothing is counted against the letters, and they keep waiting.
      const fault = error instanceof StepFault ? error.fault : error;
      const why = fault instanceof Fault ? fault.code : "INTERNAL";
      const waitMs = backoffMs(failures, random());
      this.#options.log.warn({ err: error, redrive: redrive.id, waitMs }, "the redrive waits");
      await store.delay(redrive, waitMs, why);
      return waitMs;
    }
  }

  async #batch(redrive: Redrive, waiting: WaitingLetters, count: FailureCount): Promise<void> {
    const options = this.#options;
    const { processor, metrics, clock, log, environment } = options;
    const type = this.#typeOf.get(waiting.topic);
    if (type === undefined) {
      log.warn(
        { topic: waiting.topic, redrive: redrive.id },
        "letters are of a topic that is not read any more",
      );
      await options.store.putBack(
        redrive,
        waiting.letters.map(({ id }) => id),
      );
      metrics.redriven("skipped", waiting.letters.length);
      return;
    }
    const letters = new Map(waiting.letters.map((one) => [one.record.offset, one]));
    const events = new Map<string, LetterEvent>();
    const records: ReadRecord[] = [];
    for (const letter of waiting.letters) records.push(await this.#read(letter, waiting, type, events));
    const { store, of } = options.store.transactions(redrive);
    const first = waiting.letters[0]?.record.offset ?? 0n;
    const end = (waiting.letters.at(-1)?.record.offset ?? 0n) + 1n;
    const start: Position = {
      topic: waiting.topic,
      partition: waiting.partition,
      nextOffset: first,
      epoch: 0n,
      topicId: null,
      stoppedCause: null,
    };
    const runner = createSliceRunner({
      store,
      steps: redriveSteps({ redrive, letters, events, of }),
      metrics,
      nowMs: () => clock.nowMs(),
      eventOf: async ({ value }) => (value === null ? null : (await options.decoder.decode(value)).envelope),
      toWork: (position, slice, nextOffset) => {
        const nowMs = clock.nowMs();
        return {
          processor,
          position,
          records: slice,
          nextOffset,
          control: noControl,
          guard: options.guard,
          nowMs,
          letterContext: {
            processor,
            source: waiting,
            type,
            environment,
            nowMs,
            earlier: ({ offset }) => letters.get(offset) ?? null,
          },
          claimed: [],
          duplicates: 0,
          changes: [],
          letters: [],
          notices: [],
          emissions: [],
          emitted: 0,
          held: 0,
          holdingBegan: false,
        };
      },
      afterSlice: (work) => {
        options.guard.record(work.emitted, work.nowMs);
        metrics.redriven("failed", work.letters.length);
        metrics.redriven("duplicate", work.duplicates);
        metrics.redriven("processed", work.notices.length - work.duplicates);
        for (const letter of work.letters)
          log.error(
            { letter: letter.id, code: letter.fault.code, redrive: redrive.id },
            "a letter came back",
          );
        if (work.holdingBegan)
          log.error("emissions are held back: more than the limit per window; a person releases them");
        options.wakeRelay?.();
      },
      mayGoOn: () => !this.#stopping,
    });
    await runner.run(start, records, end, count);
  }

  /** By the schemas of today; whatever it was set aside for. */
  async #read(
    letter: WaitingLetter,
    source: WaitingLetters,
    type: EventType,
    events: Map<string, LetterEvent>,
  ): Promise<ReadRecord> {
    if (letter.unreadable !== null)
      return { kind: "refused", record: letter.record, fault: letter.unreadable };
    const { decoder, processor } = this.#options;
    const [read] = await readRecords([letter.record], {
      decoder: {
        async decode(bytes) {
          const decoded = await decoder.decode(bytes);
          const { tenant_id, correlation_id, event_id } = decoded.envelope;
          events.set(letter.id, { tenantId: tenant_id, correlationId: correlation_id, eventId: event_id });
          return decoded;
        },
      },
      processor,
      source,
      type,
      // It has waited long enough: what the registry does not know now comes back.
      isSchemaOverdue: () => true,
    });
    if (read === undefined) throw new Fault("INTERNAL", "a letter was read as nothing");
    return read;
  }

  #sleep(ms: number): Promise<void> {
    if (this.#stopping) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** A letter has no place in a log that a group could know of. */
const noControl: BatchControl = {
  heartbeat: () => Promise.resolve(),
  commit: () => Promise.resolve(false),
  isCurrent: () => true,
};
