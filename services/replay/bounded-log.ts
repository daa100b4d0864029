import type { ConsumerHandlers, ConsumerPort, TopicPartition } from "../platform/kafka-consumer.ts";
import type { OffsetsPort } from "../platform/kafka-offsets.ts";
import type { LogRange } from "./shadow.ts";
import { keyOf } from "./shadow.ts";

interface Bound {
  from: bigint;
  to: bigint;
  /** Where the partition waits for its bound to be moved; null while it reads. */
  parkedAt: bigint | null;
}

/**
 * A part of the log that looks like all of it: what a host reads through these ports begins and ends with the ranges, and
 * nothing is committed to the group, whose position nobody asks for. Ranges can be extended while it reads.
 */
export class BoundedLog {
  readonly #bounds = new Map<string, Bound>();
  #consumer: ConsumerPort | null = null;

  constructor(ranges: readonly LogRange[]) {
    for (const range of ranges)
      this.#bounds.set(keyOf(range), { from: range.from, to: range.to, parkedAt: null });
  }

  /** Moves ends further out; partitions that were not in the ranges begin at `from`. */
  extend(ranges: readonly LogRange[]): void {
    let isNew = false;
    for (const range of ranges) {
      const bound = this.#bounds.get(keyOf(range));
      if (bound === undefined) {
        this.#bounds.set(keyOf(range), { from: range.from, to: range.to, parkedAt: null });
        isNew = true;
      } else if (range.to > bound.to) {
        bound.to = range.to;
        const at = bound.parkedAt;
        bound.parkedAt = null;
        if (at !== null) this.#consumer?.resume(range, at);
      }
    }
    if (isNew) this.#consumer?.restart("the part of the log to read has grown");
  }

  consumer(inner: ConsumerPort): ConsumerPort {
    this.#consumer = inner;
    const resume = (partition: TopicPartition, offset: bigint): void => {
      const bound = this.#bounds.get(keyOf(partition));
      if (bound === undefined) return;
      bound.parkedAt = offset >= bound.to ? offset : null;
      if (bound.parkedAt === null) inner.resume(partition, offset);
    };
    return {
      start: (handlers) => {
        inner.start(this.#bounded(inner, handlers));
      },
      pause: (partition) => {
        inner.pause(partition);
      },
      resume,
      restart: (reason) => {
        inner.restart(reason);
      },
      stop: () => inner.stop(),
    };
  }

  offsets(inner: OffsetsPort): OffsetsPort {
    return {
      existing: (topics) => inner.existing(topics),
      ends: async (topic) => {
        const ends = await inner.ends(topic);
        return ends.flatMap(({ partition, earliest, latest }) => {
          const bound = this.#bounds.get(keyOf({ topic, partition }));
          if (bound === undefined) return [];
          return [
            {
              partition,
              earliest: earliest > bound.from ? earliest : bound.from,
              latest: latest < bound.to ? latest : bound.to,
            },
          ];
        });
      },
      close: () => inner.close(),
    };
  }

  #bounded(inner: ConsumerPort, handlers: ConsumerHandlers): ConsumerHandlers {
    return {
      topics: () => handlers.topics(),
      assigned: async (partitions, assignment) => {
        const wanted = partitions.filter((one) => this.#bounds.has(keyOf(one)));
        const starts = await handlers.assigned(wanted, assignment);
        return starts.filter((start) => {
          const bound = this.#bounds.get(keyOf(start));
          if (bound === undefined) return false;
          bound.parkedAt = start.offset >= bound.to ? start.offset : null;
          return bound.parkedAt === null;
        });
      },
      batch: async (batch, control) => {
        const bound = this.#bounds.get(keyOf(batch));
        if (bound === undefined) return;
        const end = bound.to;
        const reachesEnd = batch.lastOffset + 1n >= end;
        if (batch.fetchedFrom < end) {
          const records = reachesEnd ? batch.records.filter(({ offset }) => offset < end) : batch.records;
          await handlers.batch(
            { ...batch, records, lastOffset: reachesEnd ? end - 1n : batch.lastOffset, logEnd: end },
            { ...control, commit: () => Promise.resolve(true) },
          );
        }
        if (!reachesEnd) return;
        // The end may have been moved while the host worked.
        if (bound.to > end) inner.resume(batch, end);
        else {
          inner.pause(batch);
          bound.parkedAt = end;
        }
      },
      ...(handlers.state === undefined
        ? {}
        : {
            state: (state: Parameters<NonNullable<ConsumerHandlers["state"]>>[0], reason: string) =>
              handlers.state?.(state, reason),
          }),
    };
  }
}
