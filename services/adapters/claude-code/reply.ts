import type { RuntimeReply, Translation } from "../../../schemas/adapter.ts";
import type { GateAnswer } from "../../../schemas/gate.ts";
import { noOpinion, toBlockingReply, toJsonReply, toTicketReply } from "../../platform/adapter-kit.ts";
import { toConfirmText, toReason } from "../../platform/refusal-text.ts";
import { rules } from "./events.ts";

const toCallDenial = (reason: string): object => ({
  hookSpecificOutput: {
    hookEventName: "PreToolUse",
    permissionDecision: "deny",
    permissionDecisionReason: reason,
  },
});
/** The client's dialog, which its user alone answers; where nobody sits it is a no with this text. */
const toQuestion = (reason: string): object => ({
  hookSpecificOutput: {
    hookEventName: "PreToolUse",
    permissionDecision: "ask",
    permissionDecisionReason: reason,
  },
});
/** The client's question has a form of its own: exit code 2 does not answer it. */
const toQuestionDenial = (reason: string): object => ({
  hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "deny", message: reason } },
});

/**
 * The blocking form of one event. Only the two gating events and unknown ones have one: a blocked stop, for example,
 * would keep the agent running, so that an observing event is answered with nothing.
 */
export function toRefusal(eventName: string | null, reason: string): RuntimeReply {
  const text = reason.trim() === "" ? "PAYLOAD_UNRECOGNIZED: refused" : reason;
  if (eventName === "PreToolUse") return toBlockingReply(toCallDenial(text), text);
  if (eventName === "PermissionRequest") return toJsonReply(toQuestionDenial(text));
  if (eventName !== null && rules.has(eventName)) return noOpinion;
  return toBlockingReply({ decision: "block", reason: text }, text);
}

const toTicketOrNo = (body: object, { decision, approval }: GateAnswer): RuntimeReply =>
  decision === "require_approval" && approval !== undefined ? toTicketReply(body) : toJsonReply(body);

/** The client's own reply to an answered call. */
function toCallReply(answer: GateAnswer): RuntimeReply {
  switch (answer.decision) {
    // Not the client's own `allow`: that would take the user's permission dialog away, and policy has no say in it.
    case "allow":
      return answer.confirm === undefined
        ? noOpinion
        : toJsonReply(toQuestion(toConfirmText(answer.confirm)));
    case "modify":
      // Whether the dialog would show the changed input was never seen.
      return answer.modified_input === undefined || answer.confirm !== undefined
        ? toJsonReply(toCallDenial(toReason(answer)))
        : toJsonReply({
            hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput: answer.modified_input },
          });
    case "require_approval":
      return toTicketOrNo(toCallDenial(toReason(answer)), answer);
    case "deny":
    case "defer":
      return toJsonReply(toCallDenial(toReason(answer)));
  }
}
/**
 * The reply to the client's own question. A changed input could be given only together with the user's yes. With `confirm`
 * the dialog that opens is the question.
 */
const toQuestionReply = (answer: GateAnswer): RuntimeReply =>
  answer.decision === "allow" ? noOpinion : toTicketOrNo(toQuestionDenial(toReason(answer)), answer);

/** The reply to any translated payload; a gated one without an answer is refused. */
export function toReply(translation: Translation, answer: GateAnswer | null): RuntimeReply {
  switch (translation.kind) {
    case "observed":
      return noOpinion;
    case "unrecognized":
      return toRefusal(
        translation.eventName,
        "PAYLOAD_UNRECOGNIZED: the adapter does not understand this payload",
      );
    case "gated": {
      const isQuestion = translation.request.phase === "permission";
      if (answer === null)
        return toRefusal(
          isQuestion ? "PermissionRequest" : "PreToolUse",
          "GATE_UNAVAILABLE: no decision was made",
        );
      return isQuestion ? toQuestionReply(answer) : toCallReply(answer);
    }
  }
}
