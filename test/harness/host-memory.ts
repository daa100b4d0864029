import type { Processor } from "../../processors/kit/processor.ts";
import type { Transaction } from "../../processors/kit/transaction.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { HostStore, HostTx, Position } from "../../services/host/host-store.ts";
import type { Letter } from "../../services/host/letter.ts";
import { keyOf } from "../../services/host/records.ts";
import type {
  BatchControl,
  ConsumerHandlers,
  ConsumerPort,
  LogRecord,
  TopicPartition,
} from "../../services/platform/kafka-consumer.ts";
import type { OffsetsPort } from "../../services/platform/kafka-offsets.ts";

/** All that a transaction can change; a copy of it is what an undone transaction leaves behind. */
interface State {
  inbox: Set<string>;
  marks: Map<string, { nextOffset: bigint; epoch: bigint; topicId: string | null; stopped: string | null }>;
  ledger: string[];
  letters: Letter[];
  outbox: Envelope[];
}

/** The host's store in memory: a transaction works on a copy, which replaces the state when it ends well. */
export class MemoryStore implements HostStore {
  state: State = { inbox: new Set(), marks: new Map(), ledger: [], letters: [], outbox: [] };
  readonly #processor: string;
  constructor(processor: Pick<Processor, "name">) {
    this.#processor = processor.name;
  }

  prepareLetters(): Promise<void> {
    return Promise.resolve();
  }

  async transaction<T>(work: (tx: HostTx) => Promise<T>): Promise<T> {
    const copy: State = {
      inbox: new Set(this.state.inbox),
      marks: new Map(this.state.marks),
      ledger: [...this.state.ledger],
      letters: [...this.state.letters],
      outbox: [...this.state.outbox],
    };
    const projection: Transaction = {
      query: (_statement, values = []) => {
        copy.ledger.push(...(values as string[]));
        return Promise.resolve({ rows: [], rowCount: values.length });
      },
    };
    const result = await work({
      projection,
      claimEvents: (ids) => {
        const fresh = ids.filter((id, index) => !copy.inbox.has(id) && ids.indexOf(id) === index);
        for (const id of fresh) copy.inbox.add(id);
        return Promise.resolve(fresh);
      },
      moveWatermark: (position, nextOffset) => {
        const mark = copy.marks.get(keyOf(position));
        if (mark === undefined || mark.nextOffset !== position.nextOffset || mark.epoch !== position.epoch) {
          return Promise.resolve(false);
        }
        copy.marks.set(keyOf(position), { ...mark, nextOffset });
        return Promise.resolve(true);
      },
      bury: (letters) => {
        const known = new Set(copy.letters.map(({ id }) => id));
        copy.letters.push(...letters.filter(({ id }) => !known.has(id)));
        return Promise.resolve();
      },
      isHeld: () => Promise.resolve(false),
      startHolding: () => Promise.resolve(false),
      findHeld: () => Promise.resolve(new Set()),
      noteEmitted: () => Promise.resolve(),
      findEmitters: () => Promise.resolve(new Map()),
      hold: () => Promise.resolve(),
      append: (events) => {
        copy.outbox.push(...events);
        return Promise.resolve();
      },
    });
    this.state = copy;
    return result;
  }

  takePositions(
    _owner: string,
    partitions: readonly (TopicPartition & { readonly earliest: bigint; readonly topicId: string | null })[],
  ): Promise<readonly Position[]> {
    return Promise.resolve(
      partitions.map(({ topic, partition, earliest, topicId }) => {
        const key = keyOf({ topic, partition });
        const mark = this.state.marks.get(key);
        const next = {
          nextOffset: mark?.nextOffset ?? earliest,
          epoch: (mark?.epoch ?? 0n) + 1n,
          topicId: mark?.topicId ?? topicId,
          stopped: mark?.stopped ?? null,
        };
        this.state.marks.set(key, next);
        return {
          topic,
          partition,
          nextOffset: next.nextOffset,
          epoch: next.epoch,
          topicId: next.topicId,
          stoppedCause: next.stopped,
        };
      }),
    );
  }

  runningIn(topic: string): Promise<readonly Position[]> {
    return Promise.resolve(
      [...this.state.marks].flatMap(([key, mark]) => {
        const at = key.lastIndexOf("/");
        if (key.slice(0, at) !== topic || mark.stopped !== null) return [];
        const { nextOffset, epoch, topicId } = mark;
        return [
          { topic, partition: Number(key.slice(at + 1)), nextOffset, epoch, topicId, stoppedCause: null },
        ];
      }),
    );
  }

  stopForGap(position: Position, gap: { readonly cause: string }, finding: Envelope): Promise<boolean> {
    const mark = this.state.marks.get(keyOf(position));
    if (mark === undefined || mark.stopped !== null) return Promise.resolve(false);
    this.state.marks.set(keyOf(position), { ...mark, stopped: gap.cause });
    this.state.outbox.push(finding);
    return Promise.resolve(true);
  }
  get processorName(): string {
    return this.#processor;
  }
}

/** A log in memory. */
export class MemoryLog implements OffsetsPort {
  readonly partitions = new Map<string, { earliest: bigint; records: LogRecord[] }>();
  /** Kafka's id of each topic; another one after it was made anew. */
  readonly topicIds = new Map<string, string>();
  constructor(topics: readonly string[], partitions: number) {
    for (const topic of topics) {
      for (let partition = 0; partition < partitions; partition += 1) {
        this.partitions.set(keyOf({ topic, partition }), { earliest: 0n, records: [] });
      }
    }
  }
  append(topic: string, partition: number, value: Buffer | null): void {
    const of = this.partitions.get(keyOf({ topic, partition }));
    of?.records.push({
      offset: BigInt(of.records.length),
      key: null,
      value,
      headers: {},
      timestampMs: 1_000,
    });
  }
  latest(partition: TopicPartition): bigint {
    return BigInt(this.partitions.get(keyOf(partition))?.records.length ?? 0);
  }
  existing(topics: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
    const all = new Set([...this.partitions.keys()].map((key) => key.slice(0, key.lastIndexOf("/"))));
    return Promise.resolve(
      new Map(
        topics
          .filter((topic) => all.has(topic))
          .map((topic) => [topic, this.topicIds.get(topic) ?? `id of ${topic}`]),
      ),
    );
  }
  ends(topic: string) {
    return Promise.resolve(
      [...this.partitions].flatMap(([key, of]) => {
        const at = key.lastIndexOf("/");
        return key.slice(0, at) === topic
          ? [
              {
                partition: Number(key.slice(at + 1)),
                earliest: of.earliest,
                latest: BigInt(of.records.length),
              },
            ]
          : [];
      }),
    );
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** A consumer that the test drives by hand: it delivers what it is told, as often as it is told. */
export class MemoryConsumer implements ConsumerPort {
  readonly #log: MemoryLog;
  /** Group offsets, shared by all members of one test. */
  readonly committed: Map<string, bigint>;
  #handlers: ConsumerHandlers | null = null;
  #assignment = 0;
  #positions = new Map<string, bigint>();
  #paused = new Set<string>();
  dead = false;

  constructor(log: MemoryLog, committed: Map<string, bigint>) {
    this.#log = log;
    this.committed = committed;
  }
  start(handlers: ConsumerHandlers): void {
    this.#handlers = handlers;
  }
  async assign(): Promise<void> {
    const partitions = [...this.#log.partitions.keys()].map(toPartition);
    this.#assignment += 1;
    this.#paused = new Set(partitions.map(keyOf));
    for (const start of (await this.#handlers?.assigned(partitions, this.#assignment)) ?? []) {
      this.resume(start, start.offset);
    }
  }
  pause(partition: TopicPartition): void {
    this.#paused.add(keyOf(partition));
  }
  resume(partition: TopicPartition, offset: bigint): void {
    this.#positions.set(keyOf(partition), offset);
    this.#paused.delete(keyOf(partition));
  }
  restart(): void {
    /* nothing to restart */
  }
  stop(): Promise<void> {
    this.dead = true;
    return Promise.resolve();
  }
  isPaused(key: string): boolean {
    return this.#paused.has(key);
  }
  position(key: string): bigint | undefined {
    return this.#positions.get(key);
  }
  /** Delivers up to `count` records; `back` begins earlier than the position, as a redelivery does. */
  async deliver(key: string, count: number, back: number): Promise<void> {
    const position = this.#positions.get(key);
    const of = this.#log.partitions.get(key);
    if (this.dead || position === undefined || of === undefined || this.#paused.has(key)) return;
    const from = position > BigInt(back) ? position - BigInt(back) : 0n;
    const records = of.records.slice(Number(from), Number(position) + count);
    const last = records.at(-1);
    if (last === undefined) return;
    const partition = toPartition(key);
    const assignment = this.#assignment;
    const control: BatchControl = {
      heartbeat: () => Promise.resolve(),
      isCurrent: () => !this.dead && assignment === this.#assignment,
      commit: (nextOffset) => {
        this.committed.set(key, nextOffset);
        this.#positions.set(key, nextOffset);
        return Promise.resolve(true);
      },
    };
    await this.#handlers?.batch(
      {
        ...partition,
        assignment,
        records,
        fetchedFrom: from,
        lastOffset: last.offset,
        logEnd: this.#log.latest(partition),
      },
      control,
    );
  }
}

function toPartition(key: string): TopicPartition {
  const at = key.lastIndexOf("/");
  return { topic: key.slice(0, at), partition: Number(key.slice(at + 1)) };
}
