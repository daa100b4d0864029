/** How many emissions one processor may make in a window before it is put to read-only. */
export interface FanOutLimit {
  readonly maxEmissions: number;
  readonly windowMs: number;
}

/** A takeover or a breaker speaks a few times a minute; a thousand in one is a loop. */
export const defaultFanOutLimit: FanOutLimit = { maxEmissions: 1_000, windowMs: 60_000 };

/** Counts committed emissions of one processor in this process, in two half windows. */
export class FanOutGuard {
  readonly #limit: FanOutLimit;
  #bucket = 0;
  #current = 0;
  #previous = 0;
  constructor(limit: FanOutLimit) {
    this.#limit = limit;
  }

  /** Whether `count` more at `nowMs` stay within the limit. Counts nothing: the transaction may still be undone. */
  admits(count: number, nowMs: number): boolean {
    this.#turn(nowMs);
    return this.#previous + this.#current + count <= this.#limit.maxEmissions;
  }

  /** Counts what was committed. */
  record(count: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#current += count;
  }

  #turn(nowMs: number): void {
    const bucket = Math.floor(nowMs / (this.#limit.windowMs / 2));
    if (bucket === this.#bucket) return;
    this.#previous = bucket === this.#bucket + 1 ? this.#current : 0;
    this.#current = 0;
    this.#bucket = bucket;
  }
}
