/** What a consumer process says of itself when asked. Times are milliseconds since 1970, with fractions. */
export interface ConsumerProgress {
  readonly firstAtMs: number;
  readonly events: number;
}

/** Counts events and remembers when the first came. */
export class ProgressCounter {
  #firstAtMs = 0;
  #events = 0;

  arrived(): void {
    if (this.#firstAtMs === 0) this.#firstAtMs = preciseNowMs();
  }

  done(count: number): void {
    this.#events += count;
  }

  read(): ConsumerProgress {
    return { firstAtMs: this.#firstAtMs, events: this.#events };
  }
}

/** The same clock in every process of the machine, finer than a millisecond. */
export function preciseNowMs(): number {
  return performance.timeOrigin + performance.now();
}
