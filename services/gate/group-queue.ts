export interface GroupQueueOptions<T> {
  /** Most items of one group. */
  readonly maxGroup: number;
  /** Groups that may run at the same time. */
  readonly maxInFlight: number;
  /** A running group that takes longer than this holds nobody up any more: the next starts beside it. */
  readonly slowMs: number;
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
 * A lone item goes at once, and while a group runs the next one fills up, so that the size of a group follows the load
 * by itself. A group starts beside others only when as much waits as they hold, so that it is decided while they are
 * committed and none is smaller for it: a group costs about as much as ten of its items. The one timer is for what waits
 * behind a slow group while nothing else comes.
 */
export function createGroupQueue<T>(options: GroupQueueOptions<T>): GroupQueue<T> {
  const waiting: T[] = [];
  let inFlight = 0;
  let underWay = 0;
  let startedMs = 0;
  let scheduled = false;
  let slowTimer: NodeJS.Timeout | null = null;
  let onDrained: (() => void)[] = [];

  function mayStart(): boolean {
    if (waiting.length === 0) return false;
    if (inFlight === 0) return true;
    if (inFlight >= options.maxInFlight) return false;
    return (
      waiting.length >= Math.min(underWay, options.maxGroup) || performance.now() - startedMs > options.slowMs
    );
  }
  function schedule(): void {
    if (scheduled) return;
    if (!mayStart()) {
      watchSlowGroup();
      return;
    }
    scheduled = true;
    // Items of the same turn of the event loop share a group.
    setImmediate(() => {
      scheduled = false;
      start();
    });
  }
  function start(): void {
    if (slowTimer !== null) clearTimeout(slowTimer);
    slowTimer = null;
    while (mayStart()) {
      const group = waiting.splice(0, options.maxGroup);
      inFlight += 1;
      underWay += group.length;
      startedMs = performance.now();
      const done = (): void => {
        inFlight -= 1;
        underWay -= group.length;
        if (waiting.length > 0) schedule();
        else if (inFlight === 0) {
          const resolve = onDrained;
          onDrained = [];
          for (const one of resolve) one();
        }
      };
      options.run(group).then(done, done);
    }
    watchSlowGroup();
  }
  /** Looks again when the last group has become slow; armed only while something waits and a slot is free. */
  function watchSlowGroup(): void {
    if (slowTimer !== null || waiting.length === 0 || inFlight >= options.maxInFlight) return;
    // A timer may come a little early by the finer clock; the millisecond keeps it from looking twice.
    const restMs = Math.max(0, startedMs + options.slowMs - performance.now()) + 1;
    slowTimer = setTimeout(() => {
      slowTimer = null;
      schedule();
    }, restMs);
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
