import type { GateAnswer } from "../../schemas/gate.ts";

/**
 * What a runtime's own dialog asks its user. An agent reads it too, where nobody sits there and the client turns it into a
 * no: it says what to do then.
 */
export const toConfirmText = (message: string): string =>
  `CONFIRMATION_REQUIRED: ${message}; the person at this client has to agree in its own dialog. If nobody answers here, do not try it another way: say what you wanted to run and why, and go on with the rest`;

/** What an agent reads when a call does not go on as asked: code, message, and what to do. Never empty. */
export function toReason(answer: GateAnswer): string {
  const said = `${answer.reason_code}: ${answer.message}`;
  switch (answer.decision) {
    case "require_approval":
      // The message names the ticket, its end and what to do next.
      return answer.approval === undefined ? `${said} (needs an approval)` : said;
    case "defer":
      return answer.defer === undefined
        ? `${said} (not decided yet: ask the same again later)`
        : `${said} (waits for ${answer.defer.facts.join(", ")}: ask the same again later, until ${answer.defer.until})`;
    case "modify":
      return `${said} (only a changed input is allowed, and it cannot be given here)`;
    case "allow":
    case "deny":
      return said;
  }
}
