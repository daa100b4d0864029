import type { Consumer, EachBatchPayload, KafkaMessage, PartitionAssigner } from "kafkajs";
import type { BrokerRoute } from "./kafka-connection.ts";
import { openKafka } from "./kafka-connection.ts";
import type { KafkaEndpoint } from "./kafka.ts";
import { backoffMs } from "./backoff.ts";
import type { Log } from "./log.ts";
import { ReadAhead } from "./read-ahead.ts";

/** A partition of a topic; the topic's name is the one on the broker, prefix included. */
export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** One record as it came from the log. Times are UTC milliseconds. */
export interface LogRecord {
  readonly offset: bigint;
  readonly key: Buffer | null;
  /** Null is a tombstone. */
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>>;
  readonly timestampMs: number;
}

/** Records of one partition, in order, of one fetch. */
export interface RecordBatch extends TopicPartition {
  /** Number of the assignment under which it was fetched. */
  readonly assignment: number;
  readonly records: readonly LogRecord[];
  /** Offset that the fetch asked for. Another one than where the caller left it is a jump of the client. */
  readonly fetchedFrom: bigint;
  /** Last offset that the fetch covered; later than the last record's when control records follow it. */
  readonly lastOffset: bigint;
  /** Offset that the next record written will get. */
  readonly logEnd: bigint;
}

/** What the handler of a batch may ask of the group while it works. */
export interface BatchControl {
  /** Tells the broker that we are alive; never throws, an expired membership shows in `isCurrent`. */
  heartbeat(): Promise<void>;
  /**
   * Commits `nextOffset` to the group. False, and no request, when the partition is no longer ours; false too when the
   * broker refused: the position in the database is what counts.
   */
  commit(nextOffset: bigint): Promise<boolean>;
  /** Whether the assignment that the batch belongs to still holds. */
  isCurrent(): boolean;
}

export type ConsumerState = "joining" | "running" | "down" | "stopped";

/** The consumer's side of the contract: it calls, the host answers. */
export interface ConsumerHandlers {
  /** Topics to subscribe to, asked before each join; all of them exist. None: it waits and asks again. */
  topics(): Promise<readonly string[]>;
  /**
   * New assignment. Nothing is delivered of a partition until an offset for it is returned here or set by `resume`;
   * one that is left out stays paused. A rejection is a fault of the handler: the partitions stay paused.
   */
  assigned(
    partitions: readonly TopicPartition[],
    assignment: number,
  ): Promise<readonly (TopicPartition & { readonly offset: bigint })[]>;
  /**
   * In order within a partition; the next one is fetched meanwhile. Must not throw: a handler that did not finish
   * pauses the partition, and resumes it where it wants to go on.
   */
  batch(batch: RecordBatch, control: BatchControl): Promise<void>;
  state?(state: ConsumerState, reason: string): void;
}

/**
 * A consumer of one group whose position is owned by the caller. Contract: test/contract/consumer.test.ts.
 */
export interface ConsumerPort {
  /** Joins in the background and stays until `stop`, whatever the broker does; resolves at once. */
  start(handlers: ConsumerHandlers): void;
  pause(partition: TopicPartition): void;
  /** Goes on with a paused partition at `offset`; without effect when it is not ours. */
  resume(partition: TopicPartition, offset: bigint): void;
  /** Leaves and joins again, asking for the topics anew. */
  restart(reason: string): void;
  /** Lets the batch in hand end, with its commit, and leaves the group. */
  stop(): Promise<void>;
}

export interface KafkaConsumerOptions {
  readonly endpoint: KafkaEndpoint;
  readonly groupId: string;
  readonly log: Log;
  readonly route?: BrokerRoute;
  /** A member that is silent for so long loses its partitions. */
  readonly sessionTimeoutMs?: number;
  readonly heartbeatIntervalMs?: number;
  readonly rebalanceTimeoutMs?: number;
  /** Longest wait of a fetch without records; also how late a resumed partition can start. */
  readonly maxWaitMs?: number;
  readonly maxBytesPerPartition?: number;
  readonly partitionsConsumedConcurrently?: number;
  /** Protocols that the member knows, the preferred one first; a group uses one that all know. Default: round robin. */
  readonly partitionAssigners?: readonly PartitionAssigner[];
  /** Waits between attempts to join grow from the first to the second. */
  readonly rejoinMinMs?: number;
  readonly rejoinMaxMs?: number;
}

/**
 * The port over kafkajs. kafkajs' own restart is off: it would run the same crash for ever (tulios/kafkajs#1271) and
 * cannot drop a topic that is gone; each attempt here is a new consumer with the topics that exist then.
 */
export function createKafkaConsumer(options: KafkaConsumerOptions): ConsumerPort {
  const rejoinMinMs = options.rejoinMinMs ?? 250;
  const rejoinMaxMs = options.rejoinMaxMs ?? 10_000;
  const atOnce = options.partitionsConsumedConcurrently ?? 3;
  const kafka = openKafka(options.endpoint, options.log, options.route);
  let handlers: ConsumerHandlers | null = null;
  let session: Session | null = null;
  let assignment = 0;
  let stopping = false;
  let failures = 0;
  let wake: (() => void) | null = null;
  let loop: Promise<void> = Promise.resolve();

  interface Session {
    readonly consumer: Consumer;
    readonly ended: Promise<string>;
    end(reason: string): void;
    owned: Set<string>;
    readonly ahead: ReadAhead;
    /** Partitions that were started, each with the number of its start: what was fetched before it is stale. */
    readonly starts: Map<string, number>;
    startCount: number;
    /** No batch begins any more. */
    closing: boolean;
    /** kafkajs has given up: nothing can be committed under this membership. */
    crashed: boolean;
    /** A request got no answer: its connection may be dead without anybody having been told. */
    silent: boolean;
  }

  const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;

  async function runSession(active: ConsumerHandlers): Promise<string> {
    const topics = await active.topics();
    if (stopping) return "stopped";
    if (topics.length === 0) return "no topic to read";
    const consumer = kafka.consumer({
      groupId: options.groupId,
      sessionTimeout: options.sessionTimeoutMs ?? 30_000,
      heartbeatInterval: options.heartbeatIntervalMs ?? 3_000,
      rebalanceTimeout: options.rebalanceTimeoutMs ?? 60_000,
      maxWaitTimeInMs: options.maxWaitMs ?? 250,
      maxBytesPerPartition: options.maxBytesPerPartition ?? 1_048_576,
      allowAutoTopicCreation: false,
      ...(options.partitionAssigners === undefined
        ? {}
        : { partitionAssigners: [...options.partitionAssigners] }),
      retry: { retries: 5, initialRetryTime: 200, restartOnFailure: () => Promise.resolve(false) },
    });
    let end: (reason: string) => void = () => undefined;
    const ended = new Promise<string>((resolve) => (end = resolve));
    const current: Session = {
      consumer,
      ended,
      end,
      owned: new Set(),
      ahead: new ReadAhead(atOnce),
      starts: new Map(),
      startCount: 0,
      closing: false,
      crashed: false,
      silent: false,
    };
    session = current;
    // kafkajs calls listeners synchronously before its first fetch of a generation: what is paused here is not fetched.
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const partitions = Object.entries(payload.memberAssignment).flatMap(([topic, ids]) =>
        ids.map((partition) => ({ topic, partition })),
      );
      assignment += 1;
      failures = 0;
      current.owned = new Set(partitions.map(keyOf));
      current.starts.clear();
      consumer.pause(partitions.map(({ topic, partition }) => ({ topic, partitions: [partition] })));
      active.state?.("running", `${partitions.length} partitions`);
      void place(active, current, partitions, assignment);
    });
    consumer.on(consumer.events.REBALANCING, () => active.state?.("joining", "the group is rebalancing"));
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      current.crashed = true;
      end(payload.error.message);
    });
    // kafkajs asks over such a connection again, five times; another session takes another one.
    consumer.on(consumer.events.REQUEST_TIMEOUT, ({ payload }) => {
      current.silent = true;
      end(`${payload.apiName} got no answer`);
    });
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: [...topics], fromBeginning: true });
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: atOnce,
        eachBatch: (payload) => deliver(active, current, payload),
      });
      return await ended;
    } finally {
      current.closing = true;
      // The batch in hand ends and commits before the group is left.
      if (!current.crashed) await current.ahead.drain();
      const left = consumer.disconnect().catch(() => undefined);
      // Over a dead connection nobody hears that we leave, and the next session need not wait for it.
      if (!current.silent) await left;
      session = null;
      assignment += 1;
    }
  }

  async function place(
    active: ConsumerHandlers,
    current: Session,
    partitions: readonly TopicPartition[],
    number: number,
  ): Promise<void> {
    try {
      const starts = await active.assigned(partitions, number);
      if (number !== assignment || session !== current) return;
      for (const start of starts) go(current, start, start.offset);
    } catch (error) {
      options.log.error(
        { err: error, group: options.groupId },
        "partitions stay paused: placing them failed",
      );
      current.end("placing partitions failed");
    }
  }

  /** kafkajs throws when its group is gone meanwhile; the next assignment then places the partition anew. */
  function quietly(what: string, act: () => void): void {
    try {
      act();
    } catch (error) {
      options.log.debug({ err: error, group: options.groupId }, `${what} came too late`);
    }
  }

  function go(current: Session, { topic, partition }: TopicPartition, offset: bigint): void {
    quietly("a resume", () => {
      current.startCount += 1;
      current.starts.set(keyOf({ topic, partition }), current.startCount);
      current.consumer.seek({ topic, partition, offset: offset.toString() });
      current.consumer.resume([{ topic, partitions: [partition] }]);
    });
  }

  /**
   * Takes a batch over and lets kafkajs go, which would fetch nothing while a batch is worked on: the next one is read
   * and unpacked while the database has this one.
   */
  async function deliver(
    active: ConsumerHandlers,
    current: Session,
    payload: EachBatchPayload,
  ): Promise<void> {
    const { batch } = payload;
    const partition = { topic: batch.topic, partition: batch.partition };
    const key = keyOf(partition);
    const mine = assignment;
    const start = current.starts.get(key);
    // INVARIANT: what was fetched before a pause or a new start is never handed over after it
    // (test/contract/consumer.test.ts "hands over nothing that was fetched before a partition began anew").
    const isFresh = (): boolean => start !== undefined && current.starts.get(key) === start;
    if (!isFresh() || payload.isStale()) return;
    const isMine = (): boolean => mine === assignment && session === current && current.owned.has(key);
    const isCurrent = (): boolean => isMine() && !current.closing && payload.isRunning();
    payload.resolveOffset(batch.lastOffset());
    const toBatch = (): RecordBatch => ({
      ...partition,
      assignment: mine,
      records: batch.messages.map(toLogRecord),
      // kafkajs has it and does not declare it.
      fetchedFrom: BigInt((batch as unknown as { readonly fetchedOffset: string }).fetchedOffset),
      lastOffset: BigInt(batch.lastOffset()),
      logEnd: BigInt(batch.highWatermark),
    });
    const control: BatchControl = {
      isCurrent,
      async heartbeat() {
        // A refused heartbeat is thrown again by kafkajs' own one, and the group is joined anew.
        await payload.heartbeat().catch(() => undefined);
      },
      async commit(nextOffset) {
        // INVARIANT: nothing is committed for a partition that a rebalance gave away: the broker checks the
        // generation only, and kafkajs commits under the newest one (test/contract/consumer.test.ts).
        if (!isMine()) return false;
        try {
          await payload.commitOffsetsIfNecessary({
            topics: [
              {
                topic: partition.topic,
                partitions: [{ partition: partition.partition, offset: nextOffset.toString() }],
              },
            ],
          });
          return true;
        } catch (error) {
          options.log.warn({ err: error, ...partition }, "the group offset was not committed");
          return false;
        }
      },
    };
    await current.ahead.bring(key, async () => {
      if (!isFresh() || !isCurrent()) return;
      try {
        await active.batch(toBatch(), control);
      } catch (error) {
        options.log.error({ err: error, ...partition }, "the handler of a batch failed");
        current.end("the handler of a batch failed");
      }
    });
  }

  function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function runForever(active: ConsumerHandlers): Promise<void> {
    while (!stopping) {
      active.state?.("joining", "joining the group");
      const reason = await runSession(active).catch((error: unknown) =>
        error instanceof Error ? error.message : String(error),
      );
      if (stopping) break;
      active.state?.("down", reason);
      failures += 1;
      const waitMs = backoffMs(failures, Math.random(), { minMs: rejoinMinMs, maxMs: rejoinMaxMs });
      options.log.warn({ group: options.groupId, reason, waitMs }, "consumer is down, joins again");
      await sleep(waitMs);
    }
    active.state?.("stopped", "stopped");
  }

  return {
    start(given) {
      if (handlers !== null) throw new Error("a consumer is started once");
      handlers = given;
      loop = runForever(given);
    },
    pause({ topic, partition }) {
      const current = session;
      const key = keyOf({ topic, partition });
      if (current?.owned.has(key) !== true) return;
      current.starts.delete(key);
      quietly("a pause", () => current.consumer.pause([{ topic, partitions: [partition] }]));
    },
    resume(partition, offset) {
      if (session?.owned.has(keyOf(partition)) === true) go(session, partition, offset);
    },
    restart(reason) {
      session?.end(reason);
      wake?.();
    },
    async stop() {
      stopping = true;
      session?.end("stopped");
      wake?.();
      await loop;
    },
  };
}

function toLogRecord(message: KafkaMessage): LogRecord {
  return {
    offset: BigInt(message.offset),
    key: message.key,
    value: message.value,
    headers: message.headers ?? noHeaders,
    timestampMs: Number(message.timestamp),
  };
}
const noHeaders: LogRecord["headers"] = {};
