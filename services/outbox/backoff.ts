/** Waiting times that double, with half of each left to chance, so that many who wait do not come back together. */
export class Backoff {
  readonly #firstMs: number;
  readonly #longestMs: number;
  readonly #random: () => number;
  #failures = 0;

  constructor(options: { firstMs: number; longestMs: number; random: () => number }) {
    this.#firstMs = options.firstMs;
    this.#longestMs = options.longestMs;
    this.#random = options.random;
  }

  nextMs(): number {
    const fullMs = Math.min(this.#longestMs, this.#firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return fullMs * (0.5 + this.#random() / 2);
  }

  reset(): void {
    this.#failures = 0;
  }
}
