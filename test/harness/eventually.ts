import { inspect } from "node:util";
import { setTimeout as wait } from "node:timers/promises";

export interface EventuallyOptions {
  readonly deadlineMs?: number;
  readonly pollMs?: number;
  /** What is waited for, for the message. */
  readonly what?: string;
}

/** Reads again and again until `accept` holds, and returns that value; at the deadline it throws with the last value or error. */
export const eventually = async <T>(
  read: () => T | Promise<T>,
  accept: (value: T) => boolean = Boolean,
  options: EventuallyOptions = {},
): Promise<T> => {
  const { deadlineMs = 10_000, pollMs = 25, what = "the condition" } = options;
  const until = Date.now() + deadlineMs;
  for (;;) {
    let last: string;
    try {
      const value = await read();
      if (accept(value)) return value;
      last = `the last value was ${inspect(value, { depth: 6, breakLength: 110 })}`;
    } catch (error) {
      last = `the last try failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    }
    if (Date.now() >= until)
      throw new Error(`${what} did not come about in ${String(deadlineMs)} ms; ${last}`);
    await wait(pollMs);
  }
};
