import type { ApprovalAnswer, ApprovalQuestion, ApprovalService } from "./approval.ts";

/** What came of asking; also when there is nobody, or when asking fails. */
export type PersonAnswer = ApprovalAnswer | "nobody" | "failed";

const codes: Readonly<Record<Exclude<PersonAnswer, "approved">, string>> = {
  refused: "APPROVAL_REFUSED",
  expired: "APPROVAL_EXPIRED",
  nobody: "APPROVAL_REQUIRED",
  failed: "APPROVAL_FAILED",
};
const words: Readonly<Record<Exclude<PersonAnswer, "approved">, string>> = {
  refused: "a person refused it",
  expired: "nobody agreed in time",
  nobody: "there is nobody to ask here",
  failed: "nobody could be asked",
};

/** The reason code of a missing agreement, and the question with what became of it. */
export function toNoWord(answer: Exclude<PersonAnswer, "approved">, reason: string): [string, string] {
  return [codes[answer], `${reason} (${words[answer]})`];
}

/** Asks the service, for as long as the ticket lasts and the harness lets it. Only `approved` agrees. */
export async function askPerson(
  question: ApprovalQuestion,
  approvals: ApprovalService | null,
  limitMs: number,
  outer: AbortSignal,
): Promise<PersonAnswer> {
  if (approvals === null) return "nobody";
  const leftMs = question.expiresAt === null ? limitMs : Date.parse(question.expiresAt) - Date.now();
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  outer.addEventListener("abort", stop, { once: true });
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<"expired">((resolve) => {
      // A time that cannot be read is over.
      timer = setTimeout(() => resolve("expired"), leftMs > 0 ? Math.min(leftMs, limitMs) : 0);
      controller.signal.addEventListener("abort", () => resolve("expired"), { once: true });
    });
    const said: unknown = await Promise.race([
      Promise.resolve().then(() => approvals.ask(question, controller.signal)),
      late,
    ]);
    return said === "approved" || said === "refused" || said === "expired" ? said : "failed";
  } catch {
    // A service that fails has agreed to nothing.
    return "failed";
  } finally {
    clearTimeout(timer);
    outer.removeEventListener("abort", stop);
    controller.abort();
  }
}
