import { setTimeout as sleep } from "node:timers/promises";
import { Fault } from "../../schemas/faults.ts";
import type { ProducerFactory } from "../platform/kafka.ts";
import type { Log } from "../platform/log.ts";
import type { Metrics } from "../platform/metrics.ts";
import { outboxChannel } from "../platform/outbox.ts";
import type { Database, Listener } from "../platform/postgres.ts";
import { Backoff } from "../platform/backoff.ts";
import { classify, isRecordFault } from "../platform/classify.ts";
import { HeldTopics } from "./held-topics.ts";
import { LaneLeases } from "./lane-leases.ts";
import type { OutboxEvent } from "./outbox-event.ts";
import { Publisher } from "./publisher.ts";
import type { SendOutcome } from "./publisher.ts";
import { createRelayMetrics, measureBacklog } from "./relay-metrics.ts";
import type { RelayMetrics } from "./relay-metrics.ts";
import { createRelaySteps } from "./relay-steps.ts";
import type { RelaySteps } from "./relay-steps.ts";
import { SettledFloor } from "./settled-floor.ts";
import { WakeUp } from "./wake-up.ts";

export interface RelayOptions {
  readonly database: Database;
  readonly producerFactory: ProducerFactory;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Unique among living relays. */
  readonly relayId: string;
  readonly topicPrefix?: string;
  readonly batchRows?: number;
  readonly batchBytes?: number;
  /** How long lanes stay ours without a renewal; renewed at a third of it. */
  readonly leaseMs?: number;
  /** Longest sleep without a wake-up: the safety net when NOTIFY does not reach us. */
  readonly pollMs?: number;
  /** How often everything is read from the start, whatever the floor says. */
  readonly sweepMs?: number;
  /** Longest pause after a failure of the broker or the database. */
  readonly longestBackoffMs?: number;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
  readonly random?: () => number;
  /** Wraps the steps: tests plant faults here. */
  readonly steps?: (steps: RelaySteps) => RelaySteps;
}

export interface RelayHealth {
  readonly listener: "live" | "stale";
  readonly laneGroups: number;
  readonly leaseValid: boolean;
  readonly heldTypes: readonly string[];
  /** The last failure that has not been followed by a success. */
  readonly fault: Fault | null;
}

export interface Relay {
  /** Publishes until the signal fires; then ends what is in flight and gives its lanes back. Rejects on a fatal fault. */
  run(signal: AbortSignal): Promise<void>;
  health(): RelayHealth;
}

/** How often settled numbers are asked for while there is work. */
const markMs = 100;
/** So many more after the last batch, then none: an idle relay uses up no transaction ids. */
const marksAfterWork = 3;
const gaugeMs = 2_000;

/**
 * Moves committed rows to Kafka: in order per key and topic, at least once.
 *
 * While batch n is with the broker, batch n-1 is being deleted and batch n+1 is being read: never more than two batches
 * in memory, and never two sends. Any failure forgets what was read ahead and starts again from what the table holds.
 */
export function createRelay(options: RelayOptions): Relay {
  return new OutboxRelay(options);
}

class OutboxRelay implements Relay {
  readonly #database: Database;
  readonly #log: Log;
  readonly #metrics: RelayMetrics;
  readonly #nowMs: () => number;
  readonly #leases: LaneLeases;
  readonly #publisher: Publisher;
  readonly #steps: RelaySteps;
  readonly #floor = new SettledFloor();
  readonly #wakeUp = new WakeUp();
  readonly #held: HeldTopics;
  readonly #backoff: Backoff;
  readonly #batchRows: number;
  readonly #batchBytes: number;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  readonly #sweepMs: number;

  #listener: "live" | "stale" = "stale";
  #fault: Fault | null = null;
  /** Rows of the next read; halved while the broker refuses a batch, until the culprit stands alone. */
  #limit: number;
  #ahead: { readonly events: readonly OutboxEvent[]; readonly era: number } | null = null;
  /** Acknowledged and still in the table. They are never sent again by us, whatever happens to the delete. */
  #unremoved: readonly OutboxEvent[] = [];
  #removal: Promise<void> | null = null;
  #era = -1;
  #markedAtMs = Number.NEGATIVE_INFINITY;
  #marking = false;
  #marksDue = marksAfterWork;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: RelayOptions) {
    this.#database = options.database;
    this.#log = options.log;
    this.#metrics = createRelayMetrics(options.metrics);
    this.#nowMs = options.nowMs ?? (() => performance.now());
    const random = options.random ?? Math.random;
    this.#leaseMs = options.leaseMs ?? 5_000;
    this.#leases = new LaneLeases({
      database: options.database,
      relayId: options.relayId,
      leaseMs: this.#leaseMs,
      nowMs: this.#nowMs,
    });
    this.#publisher = new Publisher(options.producerFactory, options.topicPrefix ?? "");
    const steps = createRelaySteps(options.database, this.#publisher, options.relayId);
    this.#steps = options.steps?.(steps) ?? steps;
    this.#held = new HeldTopics(random);
    this.#backoff = new Backoff({ firstMs: 100, longestMs: options.longestBackoffMs ?? 5_000, random });
    this.#batchRows = options.batchRows ?? 1_000;
    this.#batchBytes = options.batchBytes ?? 4 * 1024 * 1024;
    this.#pollMs = options.pollMs ?? 250;
    this.#sweepMs = options.sweepMs ?? 5_000;
    this.#limit = this.#batchRows;
  }

  health(): RelayHealth {
    return {
      listener: this.#listener,
      laneGroups: this.#leases.view.groups.length,
      leaseValid: this.#leases.valid,
      heldTypes: this.#held.types,
      fault: this.#fault,
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    const background = new AbortController();
    const keepers = [
      this.#repeat(background.signal, this.#leaseMs / 3, () => this.#renewLeases()),
      this.#repeat(background.signal, gaugeMs, () => this.#measure()),
    ];
    let listener: Listener | null = null;
    try {
      listener = await this.#database.listen(
        outboxChannel,
        () => this.#wakeUp.ring(),
        (state) => this.#onListener(state),
      );
      while (!signal.aborted) await this.#turn(signal);
    } finally {
      // What is in flight has ended with the last turn; its rows are deleted before the lanes go.
      await this.#settleRemoval().catch((error: unknown) => {
        this.#log.warn(
          { err: error },
          "rows that were published stay in the outbox: they will be published again",
        );
      });
      background.abort();
      await Promise.all(keepers);
      await this.#leases.releaseAll().catch(() => undefined);
      await listener?.close();
      await this.#publisher.close();
    }
  }

  /** One batch, or one wait; a failure is logged, waited out and forgotten. */
  async #turn(signal: AbortSignal): Promise<void> {
    try {
      await this.#cycle(signal);
    } catch (error) {
      const fault = classify(error, "publish");
      if (fault.kind === "fatal") throw fault;
      const pauseMs = this.#backoff.nextMs();
      this.#forget();
      if (this.#fault?.code !== fault.code) {
        this.#log.warn({ code: fault.code, pauseMs: Math.round(pauseMs) }, fault.message);
      }
      this.#fault = fault;
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #cycle(signal: AbortSignal): Promise<void> {
    const batch = await this.#nextBatch(signal);
    if (batch.length === 0) return;
    this.#marksDue = marksAfterWork;
    const startedAtMs = this.#nowMs();
    const [sent, ahead] = await Promise.allSettled([
      this.#steps.send(batch),
      this.#read([...batch, ...this.#unremoved]),
    ]);
    if (sent.status === "rejected") throw toError(sent.reason);
    const outcome = sent.value;
    this.#metrics.batch(batch.length, (this.#nowMs() - startedAtMs) / 1000);
    this.#metrics.published(outcome.acked.length);
    // Remembered first: should the earlier delete have failed, these are acknowledged all the same.
    const earlier = this.#settleRemoval();
    this.#unremoved = [...this.#unremoved, ...outcome.acked];
    await earlier;
    this.#startRemoval();
    if (outcome.refused.length > 0 || outcome.failed.length > 0) {
      await this.#afterFailure(outcome);
      return;
    }
    if (ahead.status === "rejected") throw toError(ahead.reason);
    this.#limit = Math.min(this.#batchRows, this.#limit * 2);
    for (const type of this.#held.remembered) {
      if (batch.some((event) => event.type === type)) this.#held.clear(type);
    }
    this.#recovered();
    this.#ahead = ahead.value;
  }

  /** What was read ahead, or a read, or a wait for something to read. */
  async #nextBatch(signal: AbortSignal): Promise<readonly OutboxEvent[]> {
    if (!this.#leases.valid || this.#leases.view.groups.length === 0) {
      this.#forget();
      await this.#settleRemoval();
      if (!this.#leases.valid) await this.#renewLeases();
      await this.#leases.releaseLeaving();
      if (this.#leases.view.groups.length === 0) await this.#wakeUp.wait(this.#pollMs, signal);
      return [];
    }
    this.#adoptLanes();
    if (this.#leases.leaving.length > 0) {
      this.#ahead = null;
      await this.#settleRemoval();
      await this.#leases.releaseLeaving();
    }
    if (this.#held.expire(this.#nowMs())) this.#forget();
    this.#askSettled();
    let batch = this.#ahead;
    this.#ahead = null;
    if (batch === null || batch.events.length === 0) {
      // A delete that failed is done again before anything more is read: at most two batches are ever remembered.
      if (this.#removal === null) await this.#settleRemoval();
      batch = await this.#read(this.#unremoved);
      if (batch.events.length === 0) {
        await this.#settleRemoval();
        this.#recovered();
        await this.#wakeUp.wait(this.#pollMs, signal);
        return [];
      }
    }
    // INVARIANT: nothing is sent of lanes that may be somebody else's by now
    // (test/fault/relay-takeover.test.ts "stops sending when its lease cannot be renewed").
    if (!this.#leases.valid || batch.era !== this.#leases.view.era) return [];
    return batch.events;
  }

  async #read(except: readonly OutboxEvent[]): Promise<{ events: readonly OutboxEvent[]; era: number }> {
    const lanes = this.#leases.view;
    const view = this.#floor.view();
    const nowMs = this.#nowMs();
    const sweep = nowMs - this.#sweptAtMs > this.#sweepMs;
    if (sweep) this.#sweptAtMs = nowMs;
    const events = await this.#steps.read({
      from: sweep ? 0n : view.from,
      groups: lanes.all ? null : lanes.groups,
      except: except.map((event) => event.seq),
      heldTypes: this.#held.types,
      limit: this.#limit,
      maxBytes: this.#batchBytes,
    });
    const first = events[0]?.seq;
    if (first !== undefined && first <= view.from && this.#floor.view().era === view.era) {
      this.#metrics.sweptBelowFloor();
      this.#log.error(
        { seq: String(first), floor: String(view.from) },
        "a row appeared below the settled floor",
      );
    }
    this.#floor.raise(view, first);
    return { events, era: lanes.era };
  }

  async #afterFailure({ acked, refused, failed }: SendOutcome): Promise<void> {
    this.#forget();
    for (const one of refused) {
      await this.#steps.park(one);
      this.#metrics.parked(one.fault.code);
      this.#log.error(
        { seq: String(one.event.seq), type: one.event.type, code: one.fault.code },
        `parked a row that cannot be published: ${one.fault.message}`,
      );
    }
    for (const code of new Set(failed.map((one) => one.fault.code))) this.#metrics.failedSend(code);
    const culprits = new Set(failed.filter((one) => isRecordFault(one.fault)).map((one) => one.event.type));
    const parkedTypes = new Set(refused.map((one) => one.event.type));
    // Smaller and smaller reads from the start of the table: what is good goes out in order, the culprit ends up alone.
    if (culprits.size > 0) this.#limit = Math.max(1, Math.floor((acked.length + failed.length) / 2));
    const down = new Map(
      failed
        .filter(
          ({ event, fault }) =>
            !isRecordFault(fault) && !culprits.has(event.type) && !parkedTypes.has(event.type),
        )
        .map(({ event, fault }) => [event.type, fault] as const),
    );
    for (const [type, fault] of down) {
      this.#held.hold(type, this.#nowMs());
      this.#log.error({ type, code: fault.code }, `rows of this type wait: ${fault.message}`);
    }
    this.#metrics.heldTopics(this.#held.types);
    const [firstFault] = down.values();
    // Nothing at all went through: more than a topic is away.
    if (firstFault?.code === "BROKER_UNAVAILABLE" && acked.length === 0) throw firstFault;
  }

  #startRemoval(): void {
    const removing = this.#unremoved;
    if (removing.length === 0) return;
    const removal = this.#steps.remove(removing).then(() => {
      const gone = new Set(removing.map((event) => event.seq));
      this.#unremoved = this.#unremoved.filter((event) => !gone.has(event.seq));
    });
    // Awaited before the next removal starts; until then a failure is not yet anybody's.
    removal.catch(() => undefined);
    this.#removal = removal;
  }

  /** Waits for the delete under way; after a failure it is tried again here. */
  async #settleRemoval(): Promise<void> {
    const removal = this.#removal;
    this.#removal = null;
    if (removal !== null) await removal;
    else if (this.#unremoved.length > 0) {
      this.#startRemoval();
      await this.#settleRemoval();
    }
  }

  /** Forgets what was read ahead: everything that is due is read again, from the start of the table. */
  #forget(): void {
    this.#ahead = null;
    this.#floor.reset();
  }

  #adoptLanes(): void {
    const { era } = this.#leases.view;
    if (era === this.#era) return;
    this.#era = era;
    this.#forget();
  }

  #recovered(): void {
    this.#backoff.reset();
    if (this.#fault === null) return;
    this.#log.info({ after: this.#fault.code }, "publishing again");
    this.#fault = null;
  }

  async #renewLeases(): Promise<void> {
    const before = this.#leases.view.era;
    await this.#leases.renew();
    if (this.#leases.view.era !== before) this.#wakeUp.ring();
    this.#metrics.lanes(this.#leases.view.groups.length);
  }

  /** Asks, without waiting, which serial numbers are settled. */
  #askSettled(): void {
    const nowMs = this.#nowMs();
    if (this.#marking || this.#marksDue === 0 || nowMs - this.#markedAtMs < markMs) return;
    this.#marksDue -= 1;
    this.#markedAtMs = nowMs;
    this.#marking = true;
    this.#database
      .query<{ drawn: bigint; xid: string; oldest: string }>({
        name: "outbox-settled-mark",
        text: `SELECT m.drawn, m.xid::text AS xid, pg_snapshot_xmin(pg_current_snapshot())::text AS oldest
               FROM outbox.settled_mark() m`,
      })
      .then(
        ({ rows: [row] }) => {
          if (row !== undefined)
            this.#floor.learn({ drawn: row.drawn, xid: BigInt(row.xid) }, BigInt(row.oldest));
        },
        // The floor stays where it is, which is always right; the read that follows meets the same fault.
        () => undefined,
      )
      .finally(() => {
        this.#marking = false;
      });
  }

  async #measure(): Promise<void> {
    const { rows, ageSeconds } = await measureBacklog(this.#database);
    this.#metrics.backlog(rows, ageSeconds);
    this.#metrics.heldTopics(this.#held.types);
  }

  #onListener(state: "live" | "stale"): void {
    if (state !== this.#listener) this.#log.info({ listener: state }, "listener changed");
    this.#listener = state;
    this.#metrics.listener(state === "live");
  }

  /** Does a thing now and every `everyMs`, whatever becomes of it. */
  async #repeat(signal: AbortSignal, everyMs: number, work: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await work().catch((error: unknown) => {
        const lost = error instanceof Fault && error.kind === "transient";
        this.#log[lost ? "debug" : "error"]({ err: error }, "will be tried again");
      });
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
