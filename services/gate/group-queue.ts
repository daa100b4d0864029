export interface GroupQueueOptions<T> {
  /** Most items of one group. */
  readonly maxGroup: number;
  /** Groups that may run at the same time. */
  readonly maxInFlight: number;
  /** Items that may wait; past it `push` refuses. */
  readonly maxWaiting: number;
  /** Handles a group; must not reject. */
  readonly run: (group: readonly T[]) => Promise<void>;
}

/** A bounded queue that hands on whatever waits, as soon as there is room for one more group. */
export interface GroupQueue<T> {
  /** False: the queue is full, and the item was not taken. */
  push(item: T): boolean;
  /** Puts items back in front; they were taken once, so there is always room. */
  putBack(items: readonly T[]): void;
  readonly waiting: number;
  /** Resolves when nothing waits and nothing runs. */
  drained(): Promise<void>;
}

/**
 * No timer: a lone item goes at once, and while groups run the next one fills up, so that the size of a group follows
 * the load by itself.
 */
export function createGroupQueue<T>(options: GroupQueueOptions<T>): GroupQueue<T> {
  const waiting: T[] = [];
  let inFlight = 0;
  let scheduled = false;
  let onDrained: (() => void)[] = [];

  function schedule(): void {
    if (scheduled || inFlight >= options.maxInFlight || waiting.length === 0) return;
    scheduled = true;
    // Items of the same turn of the event loop share a group.
    setImmediate(() => {
      scheduled = false;
      start();
    });
  }
  function start(): void {
    while (inFlight < options.maxInFlight && waiting.length > 0) {
      const group = waiting.splice(0, options.maxGroup);
      inFlight += 1;
      const done = (): void => {
        inFlight -= 1;
        if (waiting.length > 0) schedule();
        else if (inFlight === 0) {
          const resolve = onDrained;
          onDrained = [];
          for (const one of resolve) one();
        }
      };
      options.run(group).then(done, done);
    }
  }
  return {
    push(item) {
      if (waiting.length >= options.maxWaiting) return false;
      waiting.push(item);
      schedule();
      return true;
    },
    putBack(items) {
      waiting.unshift(...items);
      schedule();
    },
    get waiting() {
      return waiting.length;
    },
    drained() {
      if (waiting.length === 0 && inFlight === 0) return Promise.resolve();
      return new Promise((resolve) => onDrained.push(resolve));
    },
  };
}
