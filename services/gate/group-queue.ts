export interface GroupQueueOptions<T> {
  /** Most items of one group. */
  readonly maxGroup: number;
  /** Groups that may run at the same time. */
  readonly maxInFlight: number;
  /** A group follows the one before it no sooner than this, unless `paceSize` items wait. */
  readonly paceMs: number;
  readonly paceSize: number;
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
 * by itself. A group costs about as much as ten of its items: so the next one keeps its distance while few wait, and
 * starts beside others only when as much waits as they hold, so that it is decided while they are committed and none is
 * smaller for it. The one timer is for what waits out the distance, or behind a slow group, while nothing else comes.
 */
export function createGroupQueue<T>(options: GroupQueueOptions<T>): GroupQueue<T> {
  const waiting: T[] = [];
  let inFlight = 0;
  let underWay = 0;
  let startedMs = -Infinity;
  let scheduled = false;
  let timer: NodeJS.Timeout | null = null;
  let timerAtMs = Infinity;
  let onDrained: (() => void)[] = [];
  const paceSize = Math.min(options.paceSize, options.maxGroup);

  /** From when on what waits may start, by `performance.now`; null: only when a group ends or more comes. */
  function startsAtMs(): number | null {
    if (waiting.length === 0 || inFlight >= options.maxInFlight) return null;
    const isGroup = inFlight === 0 || waiting.length >= Math.min(underWay, options.maxGroup);
    if (!isGroup) return startedMs + options.slowMs;
    return waiting.length >= paceSize ? startedMs : startedMs + options.paceMs;
  }
  function schedule(): void {
    if (scheduled) return;
    const atMs = startsAtMs();
    if (atMs === null) return;
    if (atMs > performance.now()) {
      lookAgainAt(atMs);
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
    stopTimer();
    for (;;) {
      const atMs = startsAtMs();
      if (atMs === null) return;
      const nowMs = performance.now();
      if (atMs > nowMs) {
        lookAgainAt(atMs);
        return;
      }
      const group = waiting.splice(0, options.maxGroup);
      inFlight += 1;
      underWay += group.length;
      startedMs = nowMs;
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
      // A run that throws at once gives its place back like any other.
      new Promise<void>((resolve) => {
        resolve(options.run(group));
      }).then(done, done);
    }
  }
  function lookAgainAt(atMs: number): void {
    if (timer !== null && timerAtMs <= atMs) return;
    stopTimer();
    timerAtMs = atMs;
    // A timer may come a little early by the finer clock: then it looks twice.
    timer = setTimeout(
      () => {
        timer = null;
        schedule();
      },
      Math.ceil(atMs - performance.now()),
    );
  }
  function stopTimer(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    timerAtMs = Infinity;
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
