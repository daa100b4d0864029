import { Backoff } from "../platform/backoff.ts";

/** First and longest time that a topic is left alone after it could not take a record. */
const firstHoldMs = 200;
const longestHoldMs = 15_000;

/**
 * Event types whose topic cannot take records now: it is missing, closed to us, or a partition has no leader. Their
 * rows stay in the outbox and are left out of the reads, so that they block nobody else. Order does not suffer: it is
 * promised per key and topic, and a topic is held as a whole.
 */
export class HeldTopics {
  readonly #held = new Map<string, { readonly backoff: Backoff; untilMs: number; holding: boolean }>();
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  hold(type: string, nowMs: number): void {
    let one = this.#held.get(type);
    if (one === undefined) {
      const backoff = new Backoff({ firstMs: firstHoldMs, longestMs: longestHoldMs, random: this.#random });
      one = { backoff, untilMs: 0, holding: true };
      this.#held.set(type, one);
    }
    one.untilMs = nowMs + one.backoff.nextMs();
    one.holding = true;
  }

  /** Lets go of topics whose time is over and says whether there were any. */
  expire(nowMs: number): boolean {
    let any = false;
    for (const one of this.#held.values()) {
      if (one.holding && one.untilMs <= nowMs) {
        one.holding = false;
        any = true;
      }
    }
    return any;
  }

  /** The topic took a record: the next hold starts short again. */
  clear(type: string): void {
    this.#held.delete(type);
  }

  /** All that were held since they last took a record. */
  get remembered(): readonly string[] {
    return [...this.#held.keys()];
  }

  get types(): readonly string[] {
    return [...this.#held].filter(([, one]) => one.holding).map(([type]) => type);
  }
}
