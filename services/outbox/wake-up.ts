/**
 * A bell with a memory. INVARIANT: a ring is never lost: one that comes while nobody waits ends the next wait at once
 * (services/outbox/wake-up.test.ts "does not lose a ring that comes before the wait").
 */
export class WakeUp {
  #rung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Until the bell rings, the time is over or the signal fires; takes the ring with it and says whether there was one. */
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
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }
}
