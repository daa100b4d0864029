import type { Processor } from "../../processors/kit/processor.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Clock } from "../platform/clock.ts";
import type {
  BatchControl,
  ConsumerPort,
  ConsumerState,
  LogRecord,
  RecordBatch,
  TopicPartition,
} from "../platform/kafka-consumer.ts";
import type { OffsetsPort, PartitionEnds } from "../platform/kafka-offsets.ts";
import type { Log } from "../platform/log.ts";
import { backoffMs } from "../platform/backoff.ts";
import type { Step, Work } from "./batch-steps.ts";
import { Fenced } from "./fenced.ts";
import type { FanOutGuard } from "./fan-out-guard.ts";
import { toGapFinding } from "./gap-finding.ts";
import { findGap } from "./gap.ts";
import type { Gap } from "./gap.ts";
import type { HostMetrics } from "./host-metrics.ts";
import type { HostStore, Position } from "./host-store.ts";
import type { KnownTopics } from "./known-topics.ts";
import { createKnownTopics } from "./known-topics.ts";
import type { Partition } from "./partition.ts";
import { lagOf, newPartition } from "./partition.ts";
import type { EventDecoder, ReadRecord } from "./records.ts";
import { keyOf, readRecords } from "./records.ts";
import { HostDied, StepFault } from "./run-slice.ts";
import { createSliceRunner } from "./slice-runner.ts";

/** How long a schema id may be unknown before the record counts as poison: a registry restarts in less. */
const schemaWaitMs = 60_000;

/** A few tries are a restart of something; more of them mean that a dependency is away. */
const toleratedAttempts = 5;

export interface HostTimings {
  /** How often ends of the log, missing topics and progress are looked at. */
  readonly watchMs: number;
  /** Lag without progress for so long is a stall: not ready, and the consumer is made anew. */
  readonly stallMs: number;
  /** How often the group hears of us during a long batch. */
  readonly heartbeatMs: number;
}
export const defaultTimings: HostTimings = { watchMs: 10_000, stallMs: 60_000, heartbeatMs: 3_000 };

export interface ProcessorHostOptions {
  readonly processor: Processor;
  readonly consumer: ConsumerPort;
  readonly offsets: OffsetsPort;
  readonly store: HostStore;
  readonly decoder: EventDecoder;
  readonly metrics: HostMetrics;
  readonly guard: FanOutGuard;
  readonly steps: readonly Step[];
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** Names this member in the watermarks. */
  readonly owner: string;
  readonly environment: string;
  readonly topicPrefix: string;
  readonly timings?: Partial<HostTimings>;
  /** Called after a commit that wrote to the outbox, to wake the relay. */
  readonly wakeRelay?: () => void;
}

/** Whether a processor does its work, for the readiness probe. */
export interface HostHealth {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly partitions: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly status: Partition["status"];
    readonly reason: string | null;
    readonly nextOffset: bigint;
    readonly lagRecords: number;
    readonly lagSeconds: number;
  }[];
}

/** Runs one processor: the position, the transaction and the faults are here, the work is the processor's. */
export class ProcessorHost {
  readonly #options: ProcessorHostOptions;
  readonly #timings: HostTimings;
  readonly #typeOf: ReadonlyMap<string, EventType>;
  readonly #partitions = new Map<string, Partition>();
  /** Work in hand per partition: a new assignment waits for it before it reads the position. */
  readonly #inHand = new Map<string, Promise<void>>();
  readonly #topics: KnownTopics;
  #assignment = 0;
  #consumerState: ConsumerState = "joining";
  #stopping = false;
  #dead = false;
  #watch: NodeJS.Timeout | null = null;
  #watching: Promise<void> = Promise.resolve();
  #remadeMs = 0;

  constructor(options: ProcessorHostOptions) {
    this.#options = options;
    this.#timings = { ...defaultTimings, ...options.timings };
    this.#typeOf = new Map(options.processor.topics.map((type) => [options.topicPrefix + type, type]));
    this.#topics = createKnownTopics({ ...options, wanted: [...this.#typeOf.keys()] });
  }

  start(): void {
    this.#options.consumer.start({
      topics: () => this.#topics.existing(),
      assigned: (partitions, assignment) => this.#assigned(partitions, assignment),
      batch: (batch, control) => this.#batch(batch, control),
      state: (state, reason) => this.#state(state, reason),
    });
    this.#scheduleWatch();
  }

  /** Ends the batch in hand, commits it, leaves the group. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#watch !== null) clearTimeout(this.#watch);
    for (const one of this.#partitions.values()) clearRetry(one);
    await this.#options.consumer.stop();
    await Promise.all(this.#inHand.values());
    await this.#watching;
  }

  health(): HostHealth {
    const nowMs = this.#options.clock.nowMs();
    const reasons: string[] = [];
    if (this.#dead) reasons.push("the host ended");
    if (this.#consumerState === "down") reasons.push("the consumer is down");
    for (const topic of this.#topics.missing()) reasons.push(`topic ${topic} does not exist`);
    const partitions = [...this.#partitions.values()].map((one) => {
      const lag = lagOf(one, nowMs);
      if (one.status === "stopped") reasons.push(`${keyOf(one)} is stopped: ${one.reason ?? "gap"}`);
      else if (one.attempts > toleratedAttempts)
        reasons.push(`${keyOf(one)} waits: ${one.reason ?? "retry"}`);
      else if (this.#isStuck(one, nowMs)) reasons.push(`${keyOf(one)} makes no progress`);
      return {
        topic: one.topic,
        partition: one.partition,
        status: one.status,
        reason: one.reason,
        nextOffset: one.position.nextOffset,
        lagRecords: lag.records,
        lagSeconds: lag.seconds,
      };
    });
    return { ready: reasons.length === 0, reasons, partitions };
  }

  #state(state: ConsumerState, reason: string): void {
    if (state === "down") this.#options.metrics.restarted();
    if (state !== this.#consumerState) this.#options.log.info({ state, reason }, "consumer state");
    this.#consumerState = state;
  }

  async #assigned(
    partitions: readonly TopicPartition[],
    assignment: number,
  ): Promise<readonly (TopicPartition & { readonly offset: bigint })[]> {
    this.#assignment = assignment;
    const kept = new Set(partitions.map(keyOf));
    for (const [key, one] of this.#partitions) {
      clearRetry(one);
      if (!kept.has(key)) this.#forget(one);
    }
    // INVARIANT: the position is read after the work in hand ended, so that it is not replaced under it
    // (test/integration/host.test.ts "counts each event once while members come and go").
    await Promise.all([...this.#inHand.values()]);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#place(partitions, assignment);
      } catch (error) {
        if (this.#assignment !== assignment || this.#stopping) return [];
        const waitMs = backoffMs(attempt, this.#options.random());
        this.#options.log.warn({ err: error, waitMs }, "positions cannot be read, trying again");
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        if (this.#assignment !== assignment || this.#stopping) return [];
      }
    }
  }

  async #place(
    partitions: readonly TopicPartition[],
    assignment: number,
  ): Promise<readonly (TopicPartition & { readonly offset: bigint })[]> {
    const ends = new Map<string, PartitionEnds>();
    const topics = [...new Set(partitions.map((one) => one.topic))];
    // Asked before the ends: a topic that is made anew in between shows at the next look.
    const ids = await this.#options.offsets.existing(topics);
    for (const topic of topics) {
      for (const one of await this.#options.offsets.ends(topic)) {
        ends.set(keyOf({ topic, partition: one.partition }), one);
      }
    }
    const known = partitions.flatMap((one) => {
      const end = ends.get(keyOf(one));
      return end === undefined
        ? []
        : [{ ...one, earliest: end.earliest, topicId: ids.get(one.topic) ?? null }];
    });
    if (known.length === 0) return [];
    const positions = await this.#options.store.takePositions(this.#options.owner, known);
    if (this.#assignment !== assignment) return [];
    const starts: (TopicPartition & { offset: bigint })[] = [];
    for (const position of positions) {
      const end = ends.get(keyOf(position));
      if (end === undefined) continue;
      const one = newPartition(position, assignment, end.latest, this.#options.clock.nowMs());
      this.#partitions.set(keyOf(one), one);
      const gap = findGap(
        position.nextOffset,
        { ...end, topicId: ids.get(position.topic) ?? null },
        position.topicId,
      );
      if (position.stoppedCause !== null) this.#halt(one, position.stoppedCause);
      else if (gap !== null) await this.#stopForGap(one, gap);
      else {
        this.#options.metrics.paused(one, null);
        starts.push({ topic: one.topic, partition: one.partition, offset: position.nextOffset });
      }
    }
    return starts;
  }

  async #batch(batch: RecordBatch, control: BatchControl): Promise<void> {
    const key = keyOf(batch);
    const one = this.#partitions.get(key);
    if (one === undefined || one.assignment !== batch.assignment || one.status !== "running" || this.#dead)
      return;
    const before = this.#inHand.get(key);
    const work = (before ?? Promise.resolve()).then(() => this.#handle(one, batch, control));
    this.#inHand.set(key, work);
    const timer = setInterval(() => void control.heartbeat(), this.#timings.heartbeatMs);
    try {
      await work;
    } finally {
      clearInterval(timer);
      if (this.#inHand.get(key) === work) this.#inHand.delete(key);
    }
  }

  /** Never throws: what fails pauses the partition, since kafkajs would restart the whole consumer for it. */
  async #handle(one: Partition, batch: RecordBatch, control: BatchControl): Promise<void> {
    // What it waited for may have failed, or the partition may have changed hands.
    if (one.status !== "running" || this.#partitions.get(keyOf(one)) !== one || !control.isCurrent()) return;
    try {
      if (await this.#isOfAnotherTopic(one)) return;
      one.logEnd = batch.logEnd;
      const records = await this.#fromPosition(one, batch);
      if (records === null) return;
      const read = await readRecords(records, {
        decoder: this.#options.decoder,
        processor: this.#options.processor,
        source: one,
        type: this.#typeOf.get(batch.topic) ?? "",
        isSchemaOverdue: () => this.#isSchemaOverdue(one),
        receivedMs: this.#options.clock.nowMs(),
      });
      one.schemaWaitSinceMs = null;
      await this.#run(one, read, batch.lastOffset + 1n, control);
    } catch (error) {
      this.#failed(one, error);
    }
  }

  /** Whether the records may be those of a topic that was made anew: nothing is done with them until a look has decided. */
  async #isOfAnotherTopic(one: Partition): Promise<boolean> {
    const topicId = await this.#topics.freshIdOf(one.topic);
    if (one.position.topicId === null || topicId === null || topicId === one.position.topicId) return false;
    this.#options.consumer.pause(one);
    one.suspicion ??= recreatedAs(topicId);
    return true;
  }

  /** The records from the position on; null when there is nothing to do, or the partition was stopped. */
  async #fromPosition(one: Partition, batch: RecordBatch): Promise<readonly LogRecord[] | null> {
    const expected = one.position.nextOffset;
    if (batch.fetchedFrom !== expected) {
      // The client jumped, and says so in a log line only: its position was out of range, or it skipped over what it
      // filters (aborted transactions, compaction). Records behind a jump are believed when asking again gives the same.
      const ids = await this.#options.offsets.existing([one.topic]);
      const end = (await this.#options.offsets.ends(one.topic)).find(
        ({ partition }) => partition === one.partition,
      );
      const gap =
        end === undefined
          ? null
          : findGap(expected, { ...end, topicId: ids.get(one.topic) ?? null }, one.position.topicId);
      if (gap !== null) {
        this.#options.consumer.pause(one);
        await this.#stopForGap(one, gap);
        return null;
      }
      const jump = `${expected} to ${batch.fetchedFrom}`;
      if (batch.fetchedFrom > expected && one.jump !== jump) {
        one.jump = jump;
        this.#options.consumer.resume(one, expected);
        return null;
      }
    }
    const [first] = batch.records;
    const records =
      first === undefined || first.offset >= expected
        ? batch.records
        : batch.records.filter(({ offset }) => offset >= expected);
    const redelivered = batch.records.length - records.length;
    if (redelivered > 0) this.#options.metrics.duplicates(one, redelivered, "watermark");
    if (batch.lastOffset < expected) {
      this.#options.consumer.resume(one, expected);
      return null;
    }
    return records;
  }

  async #run(
    one: Partition,
    read: readonly ReadRecord[],
    batchEnd: bigint,
    control: BatchControl,
  ): Promise<void> {
    const options = this.#options;
    const runner = createSliceRunner({
      store: options.store,
      steps: options.steps,
      metrics: options.metrics,
      nowMs: () => options.clock.nowMs(),
      eventOf: async ({ value }) => (value === null ? null : (await options.decoder.decode(value)).envelope),
      toWork: (position, records, nextOffset) => this.#toWork(one, position, records, nextOffset, control),
      afterSlice: (work) => this.#afterSlice(one, work),
      mayGoOn: () => control.isCurrent(),
    });
    await runner.run(one.position, read, batchEnd, one.failures);
  }

  #toWork(
    one: Partition,
    position: Position,
    records: readonly ReadRecord[],
    nextOffset: bigint,
    control: BatchControl,
  ): Work {
    const { processor, guard, clock, environment } = this.#options;
    const nowMs = clock.nowMs();
    const type = this.#typeOf.get(one.topic);
    if (type === undefined) throw new Fault("INTERNAL", `${one.topic} is no topic of \`${processor.name}\``);
    return {
      processor,
      position,
      records,
      nextOffset,
      control,
      guard,
      nowMs,
      letterContext: { processor, source: one, type, environment, nowMs },
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
  }

  #afterSlice(one: Partition, work: Work): void {
    const nowMs = this.#options.clock.nowMs();
    one.position = { ...work.position, nextOffset: work.nextOffset };
    one.lastProgressMs = nowMs;
    one.attempts = 0;
    one.lastRecordMs = work.records.at(-1)?.record.timestampMs ?? one.lastRecordMs;
    const lag = lagOf(one, nowMs);
    this.#options.metrics.lag(one, lag.records, lag.seconds);
    this.#options.guard.record(work.emitted, nowMs);
    for (const letter of work.letters) {
      this.#options.log.error(
        {
          letter: letter.id,
          kind: letter.kind,
          code: letter.fault.code,
          offset: String(letter.record.offset),
          topic: one.topic,
          partition: one.partition,
        },
        "a record was set aside",
      );
    }
    if (work.holdingBegan) {
      this.#options.log.error(
        "emissions are held back: more than the limit per window; a person releases them",
      );
    }
    if (work.emitted > 0 || work.letters.length > 0) this.#options.wakeRelay?.();
  }

  #failed(one: Partition, error: unknown): void {
    if (error instanceof HostDied) {
      this.#dead = true;
      return;
    }
    this.#options.consumer.pause(one);
    const { metrics, log, random } = this.#options;
    one.status = "retrying";
    one.attempts += 1;
    const waitMs = backoffMs(one.attempts, random());
    const fenced = error instanceof Fenced;
    const cause = error instanceof StepFault ? error.fault : error;
    const fault = cause instanceof Fault ? cause : null;
    one.reason = fenced ? "fenced" : (fault?.code ?? "INTERNAL");
    if (fenced) metrics.fenced();
    else metrics.retries(one.reason);
    log[fenced || fault?.kind === "transient" ? "warn" : "error"](
      { err: error, topic: one.topic, partition: one.partition, attempt: one.attempts, waitMs },
      "the partition waits",
    );
    metrics.paused(one, "retry");
    this.#retryLater(one, waitMs, fenced);
  }

  #retryLater(one: Partition, waitMs: number, retake: boolean): void {
    clearRetry(one);
    if (this.#stopping) return;
    one.timer = setTimeout(() => {
      one.timer = null;
      void this.#retry(one, retake);
    }, waitMs);
  }

  async #retry(one: Partition, retake: boolean): Promise<void> {
    if (this.#stopping || this.#partitions.get(keyOf(one)) !== one || one.assignment !== this.#assignment)
      return;
    if (retake) {
      try {
        const starts = await this.#place([one], one.assignment);
        for (const start of starts) this.#options.consumer.resume(start, start.offset);
      } catch (error) {
        this.#failed(one, error);
      }
      return;
    }
    one.status = "running";
    one.reason = null;
    this.#options.metrics.paused(one, null);
    this.#options.consumer.resume(one, one.position.nextOffset);
  }

  async #stopForGap(one: Partition, gap: Gap): Promise<void> {
    await this.#publishGap(one.position, gap);
    this.#halt(one, gap.cause);
  }

  async #publishGap(one: Position, gap: Gap): Promise<void> {
    const { processor, clock, environment, store, metrics, log } = this.#options;
    const finding = toGapFinding(one, gap, { processor: processor.name, environment, nowMs: clock.nowMs() });
    if (await store.stopForGap(one, gap, finding)) {
      metrics.gap(one, gap.cause);
      log.error(
        {
          topic: one.topic,
          partition: one.partition,
          cause: gap.cause,
          expected: String(gap.expectedOffset),
          found: String(gap.foundOffset),
        },
        "records are gone that were never processed: the partition is stopped, a person decides how it goes on",
      );
      this.#options.wakeRelay?.();
    }
  }

  #halt(one: Partition, cause: string): void {
    one.status = "stopped";
    one.reason = cause;
    this.#options.metrics.paused(one, "gap");
  }

  #forget(one: Partition): void {
    this.#partitions.delete(keyOf(one));
    this.#options.metrics.paused(one, null);
    this.#options.metrics.lag(one, 0, 0);
    this.#options.metrics.noProgress(one, false);
  }

  #isSchemaOverdue(one: Partition): boolean {
    const nowMs = this.#options.clock.nowMs();
    one.schemaWaitSinceMs ??= nowMs;
    return nowMs - one.schemaWaitSinceMs >= schemaWaitMs;
  }

  #isStuck(one: Partition, nowMs: number): boolean {
    return lagOf(one, nowMs).records > 0 && nowMs - one.lastProgressMs >= this.#timings.stallMs;
  }

  #scheduleWatch(): void {
    if (this.#stopping) return;
    this.#watch = setTimeout(() => {
      this.#watching = this.#look()
        .catch((error: unknown) => this.#options.log.warn({ err: error }, "the log's ends cannot be read"))
        .finally(() => this.#scheduleWatch());
    }, this.#timings.watchMs);
    this.#watch.unref();
  }

  /**
   * A log that was made anew under a running consumer, or trimmed to its end, hands out no batch that would show it.
   * Records in hand are not lost, and a new leader may know a shorter log for a moment: two looks have to agree.
   * INVARIANT: test/integration/host-watch.test.ts "stops a partition whose topic was made anew while it had nothing …".
   */
  async #compare(one: Partition, position: bigint | undefined, end: PartitionEnds): Promise<void> {
    const { consumer } = this.#options;
    if (one.status === "stopped") return;
    const topicId = this.#topics.idOf(one.topic);
    if (one.position.topicId !== null && topicId !== null && topicId !== one.position.topicId) {
      // Nothing more is read of a log that may be another one; what a broker that lags behind says is forgotten again.
      consumer.pause(one);
      const before = one.suspicion;
      one.suspicion = recreatedAs(topicId);
      if (one.suspicion !== before || this.#inHand.has(keyOf(one))) return;
      clearRetry(one);
      await this.#stopForGap(one, {
        cause: "topic_recreated",
        expectedOffset: one.position.nextOffset,
        foundOffset: end.earliest,
      });
      return;
    }
    if (one.suspicion?.startsWith("topic_recreated") === true) {
      one.suspicion = null;
      if (one.status === "running") consumer.resume(one, one.position.nextOffset);
    }
    const settled = !this.#inHand.has(keyOf(one)) && position === one.position.nextOffset;
    const gap = settled ? findGap(position, end) : null;
    const before = one.suspicion;
    one.suspicion = gap === null ? null : `${gap.cause} at ${gap.expectedOffset}`;
    if (gap === null || one.suspicion !== before) return;
    clearRetry(one);
    consumer.pause(one);
    await this.#stopForGap(one, gap);
  }

  /**
   * A topic that was read and is gone has taken what was not read with it: its partitions stop, also for the topic that is
   * made in its place. Two looks have to agree, since a broker that starts knows nothing for a moment.
   * INVARIANT: test/integration/gaps.test.ts "stops at a topic that was deleted, …".
   */
  async #stopMissing(): Promise<void> {
    for (const topic of this.#topics.missedAgain()) {
      for (const position of await this.#options.store.runningIn(topic)) {
        const gap = { cause: "topic_missing", expectedOffset: position.nextOffset, foundOffset: 0n } as const;
        await this.#publishGap(position, gap);
        const one = this.#partitions.get(keyOf(position));
        if (one !== undefined) this.#halt(one, gap.cause);
      }
    }
  }

  /** Looks at what no batch would tell: a log that was cut, lag of paused partitions, a topic that came or went, a consumer that sleeps. */
  async #look(): Promise<void> {
    const { consumer, offsets, metrics, clock } = this.#options;
    const missingBefore = [...this.#topics.missing()].sort().join();
    await this.#topics.existing();
    if ([...this.#topics.missing()].sort().join() !== missingBefore) consumer.restart("topics came or went");
    await this.#stopMissing();
    for (const topic of new Set([...this.#partitions.values()].map((one) => one.topic))) {
      if (this.#topics.isMissing(topic)) continue;
      // Positions first: what is read while the broker answers lies behind its answer.
      const positions = new Map([...this.#partitions].map(([key, one]) => [key, one.position.nextOffset]));
      for (const end of await offsets.ends(topic)) {
        const key = keyOf({ topic, partition: end.partition });
        const one = this.#partitions.get(key);
        if (one === undefined) continue;
        one.logEnd = end.latest;
        const lag = lagOf(one, clock.nowMs());
        metrics.lag(one, lag.records, lag.seconds);
        await this.#compare(one, positions.get(key), end);
      }
    }
    // A person may have chosen how a stopped partition goes on.
    for (const one of [...this.#partitions.values()].filter(({ status }) => status === "stopped")) {
      for (const start of await this.#place([one], one.assignment)) consumer.resume(start, start.offset);
    }
    const nowMs = clock.nowMs();
    let asleep = false;
    for (const one of this.#partitions.values()) {
      const stuck = this.#isStuck(one, nowMs);
      metrics.noProgress(one, stuck);
      asleep ||= stuck && one.status === "running" && !this.#inHand.has(keyOf(one));
    }
    if (asleep && nowMs - this.#remadeMs >= this.#timings.stallMs) {
      this.#remadeMs = nowMs;
      consumer.restart("lag and no progress");
    }
  }
}

const recreatedAs = (topicId: string): string => `topic_recreated as ${topicId}`;

function clearRetry(one: Partition): void {
  if (one.timer !== null) clearTimeout(one.timer);
  one.timer = null;
}
