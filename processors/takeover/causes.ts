import type { TakeoverCause } from "../../schemas/generated/types.ts";

/** Why an item is in the queue. */
export type Cause = Exclude<TakeoverCause, "unknown">;

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** How long an item of a kind may stay open before it is a breach, in milliseconds, and why this long. */
export const slaMs: Readonly<Record<Cause, number>> = {
  // A tool ran and nobody had decided: what came of it may still be going on.
  effect_ungated: 15 * minuteMs,
  // Agreed to one thing, another ran: the same.
  plan_diverged: 15 * minuteMs,
  // A whole scope stands still until a person looks.
  breaker: 30 * minuteMs,
  // Money or data may have moved; resources forget idempotency keys after hours.
  effect_unresolved: hourMs,
  // A consumer does not go on in a partition, and retention takes more each hour.
  gap: hourMs,
  // Agents of a runtime are refused as long as nobody teaches the adapter.
  adapter_unrecognized: 2 * hourMs,
  // The scope's agents are refused until a person raises the limit, or does not.
  budget: 2 * hourMs,
  // An agent waits for a fact, and asks again by itself; the item settles with the answer.
  deferred: 4 * hourMs,
  gate_timeout: 4 * hourMs,
  // Who asked has gone on by then; the plan can be asked for again.
  approval_expired: 8 * hourMs,
  // The bytes are kept, and the rest of the partition goes on: a working day.
  letter: 24 * hourMs,
};
