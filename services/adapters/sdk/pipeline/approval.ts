import { setTimeout as wait } from "node:timers/promises";
import type { GateClient } from "../gate/gate-client.ts";
import type { GateQuestion } from "../gate/gate-answer.ts";

/** What a person is asked. */
export interface ApprovalQuestion {
  /** The gate's ticket; null when a handler asks. */
  readonly approvalId: string | null;
  readonly askedBy: "gate" | `hook:${string}`;
  readonly reason: string;
  /** When the ticket ends, UTC ISO 8601. */
  readonly expiresAt: string | null;
  readonly call: GateQuestion;
}
export type ApprovalAnswer = "approved" | "refused" | "expired";

/**
 * Where a person's word comes from: a service that answers in its own time, and no hook, so that no handler can agree in a
 * person's place. A gate's ticket is settled at the gate; the service only says when to ask again.
 */
export interface ApprovalService {
  ask(question: ApprovalQuestion, signal: AbortSignal): Promise<ApprovalAnswer>;
}

const defaultPollMs = 1_000;

/**
 * Waits for tickets of the gate, by asking it again until the ticket is settled or ends. What handlers ask it refuses:
 * there is nobody to ask.
 */
export function createTicketWaiter(
  gate: Pick<GateClient, "decide">,
  { pollMs = defaultPollMs }: { readonly pollMs?: number } = {},
): ApprovalService {
  return {
    async ask({ approvalId, expiresAt, call }, signal) {
      if (approvalId === null || expiresAt === null) return "refused";
      const untilMs = Date.parse(expiresAt);
      while (Date.now() < untilMs) {
        await wait(pollMs, undefined, { signal });
        const decision = await gate.decide(call);
        // A gate that is away settles nothing.
        if (decision.decisionId === null) continue;
        if (decision.decision === "allow") return "approved";
        if (decision.decision !== "require_approval") return "refused";
        if (decision.approval.id !== approvalId) return "expired";
      }
      return "expired";
    },
  };
}
