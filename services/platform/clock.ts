/** Wall clock, handed in wherever time is read. UTC milliseconds. */
export interface Clock {
  nowMs(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { nowMs: () => Date.now() };
