import type { GateAnswer } from "../../schemas/gate.ts";

/** What an agent reads when a call does not go on as asked: code, message, and what to do. Never empty. */
export function toReason(answer: GateAnswer): string {
  const said = `${answer.reason_code}: ${answer.message}`;
  switch (answer.decision) {
    case "require_approval":
      return answer.approval === undefined
        ? `${said} (needs an approval)`
        : `${said} (ticket ${answer.approval.id}, open until ${answer.approval.expires_at}: ask the same again once it is approved)`;
    case "defer":
      return `${said} (not decided yet: ask the same again later)`;
    case "modify":
      return `${said} (only a changed input is allowed, and it cannot be given here)`;
    case "allow":
    case "deny":
      return said;
  }
}
