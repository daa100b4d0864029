import type { Blocker } from "../registry/hook-points.ts";

/** A call whose body was entered. */
export interface ExecutedCall {
  readonly callId: string;
  readonly sessionId: string;
  readonly tool: string;
  /** SHA-256 over the canonical form of the input that ran. */
  readonly inputDigest: string;
  readonly attempts: number;
  readonly status: "succeeded" | "withheld" | "failed" | "unknown";
  /** Set when the body of an unknown call came to an end after all. */
  readonly endedLate?: "succeeded" | "failed";
  readonly decisionId: string | null;
  readonly durationMs: number;
}

/** A call whose body was never entered. */
export interface BlockedCall {
  readonly callId: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly by: Blocker;
  readonly handler?: string;
  readonly reasonCode: string;
  readonly message: string;
}

/** What was used and what was refused: two books, and no call is in both. */
export interface CallLedgers {
  readonly executed: readonly ExecutedCall[];
  readonly blocked: readonly BlockedCall[];
}

/** Keeps the newest entries of each. */
export function createLedgers(max: number): CallLedgers & {
  addExecuted(call: ExecutedCall): void;
  addBlocked(call: BlockedCall): void;
  endLate(callId: string, sessionId: string, how: "succeeded" | "failed"): void;
} {
  const executed: ExecutedCall[] = [];
  const blocked: BlockedCall[] = [];
  const add = <T>(book: T[], entry: T): void => {
    book.push(Object.freeze(entry));
    if (book.length > max) book.shift();
  };
  return {
    executed,
    blocked,
    addExecuted: (call) => add(executed, call),
    addBlocked: (call) => add(blocked, call),
    endLate(callId, sessionId, how) {
      const at = executed.findLastIndex((one) => one.callId === callId && one.sessionId === sessionId);
      const entry = executed[at];
      if (entry !== undefined) executed[at] = Object.freeze({ ...entry, endedLate: how });
    },
  };
}
