/**
 * A bell with a memory. INVARIANT: a ring between `listenFrom` and `wait` is not lost: `wait` then returns at once
 * (services/outbox/wake-up.test.ts "does not lose a ring that comes before the wait").
 */
export class WakeUp {
  #rung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Forgets earlier rings. Call it before the read whose emptiness leads to the wait. */
  listenFrom(): void {
    this.#rung = false;
  }

  /** Until the bell rings, the time is over or the signal fires; says whether it rang. */
  async wait(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#rung && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", done);
          this.#wake = null;
          resolve();
        };
        const timer = setTimeout(done, timeoutMs);
        signal.addEventListener("abort", done, { once: true });
        this.#wake = done;
      });
    }
    return this.#rung;
  }
}
