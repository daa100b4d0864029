import type { Transaction } from "../../processors/kit/transaction.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { TopicPartition } from "../platform/kafka-consumer.ts";
import type { Gap } from "./gap.ts";
import type { Letter } from "./letter.ts";

/** Where one processor stands in one partition, and under which epoch it may move on. */
export interface Position extends TopicPartition {
  readonly nextOffset: bigint;
  readonly epoch: bigint;
  /** Kafka's id of the topic that it stands in; null when nobody has told it. */
  readonly topicId: string | null;
  /** Why a person has to look before it goes on; null while it runs. */
  readonly stoppedCause: string | null;
}

/** What a batch does to the database, in one transaction. Faults leave as `Fault`. */
export interface HostTx {
  /** What the processor's `apply` is handed. */
  readonly projection: Transaction;
  /** Claims events for the processor; returns those that nobody had claimed before, each once. */
  claimEvents(eventUuids: readonly string[]): Promise<readonly string[]>;
  /** Moves the watermark from where it was expected; false when another member has moved it or taken the epoch. */
  moveWatermark(position: Position, nextOffset: bigint): Promise<boolean>;
  bury(letters: readonly Letter[]): Promise<void>;
  /** Whether the processor's emissions are held back; a release waits for the transaction that asked. */
  isHeld(): Promise<boolean>;
  /** Holds emissions back from now on, asked after `isHeld`; true when this call was the first to do so. */
  startHolding(reason: string): Promise<boolean>;
  hold(events: readonly Envelope[]): Promise<void>;
  /** Ids of those whose goal, agent, tenant or everything the breaker or a person holds back. */
  findHeld(events: readonly Envelope[]): Promise<ReadonlySet<string>>;
  /** Notes what the processor sets off, and of what; again is nothing new. */
  noteEmitted(events: readonly Envelope[]): Promise<void>;
  /**
   * Event id → processors whose emissions it comes from, itself included, as far as the longest chain that may be; an event
   * that no processor set off is absent.
   */
  findEmitters(eventIds: readonly string[]): Promise<ReadonlyMap<string, ReadonlySet<string>>>;
  /** Appends events to the outbox: once per transaction, last. */
  append(events: readonly Envelope[]): Promise<void>;
}

/** One processor's state. The Postgres one is `createPostgresHostStore`; properties run on one in memory. */
export interface HostStore {
  /** To be called before a transaction that buries letters of these tenants. */
  prepareLetters(tenantIds: readonly string[]): Promise<void>;
  transaction<T>(work: (tx: HostTx) => Promise<T>): Promise<T>;
  /**
   * Takes partitions over: the epoch of each rises, so that whoever had it can commit nothing more. One that was never
   * read begins at its earliest offset; one that knows no topic id takes the one that is given.
   */
  takePositions(
    owner: string,
    partitions: readonly (TopicPartition & { readonly earliest: bigint; readonly topicId: string | null })[],
  ): Promise<readonly Position[]>;
  /** Stops a partition for a gap and publishes the finding, once; false when it was stopped for it before. */
  stopForGap(position: Position, gap: Gap, finding: Envelope): Promise<boolean>;
  /** Where the processor stands in a topic, whoever has its partitions: those that are not stopped. */
  runningIn(topic: string): Promise<readonly Position[]>;
}
