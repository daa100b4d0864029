/** Limits of the wait before a partition is tried again. */
export interface BackoffLimits {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Quick after a lost race, and no more than twice a minute while a database is away. */
export const retryLimits: BackoffLimits = { minMs: 100, maxMs: 30_000 };

/** Exponential wait with full jitter above half; `random` is from 0 to 1, `attempt` from 1. */
export function backoffMs(attempt: number, random: number, limits: BackoffLimits = retryLimits): number {
  const ceiling = Math.min(limits.maxMs, limits.minMs * 2 ** Math.min(attempt - 1, 20));
  return Math.round(ceiling * (0.5 + random / 2));
}

/** Waits that grow from failure to failure, and begin anew after a success. */
export class Backoff {
  readonly #limits: BackoffLimits;
  readonly #random: () => number;
  #failures = 0;

  constructor(options: { firstMs: number; longestMs: number; random: () => number }) {
    this.#limits = { minMs: options.firstMs, maxMs: options.longestMs };
    this.#random = options.random;
  }

  nextMs(): number {
    this.#failures += 1;
    return backoffMs(this.#failures, this.#random(), this.#limits);
  }

  reset(): void {
    this.#failures = 0;
  }
}
