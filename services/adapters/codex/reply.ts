import type { RuntimeReply, Translation } from "../../../schemas/adapter.ts";
import type { GateAnswer, GateRequest } from "../../../schemas/gate.ts";
import { noOpinion, toBlockingReply, toJsonReply, toTicketReply } from "../../platform/adapter-kit.ts";
import { toReason } from "../../platform/refusal-text.ts";
import { rules } from "./events.ts";

/** Exactly these fields: one more, or an empty reason, and the client drops the denial and runs the tool. */
const toCallDenial = (reason: string): object => ({
  hookSpecificOutput: {
    hookEventName: "PreToolUse",
    permissionDecision: "deny",
    permissionDecisionReason: reason,
  },
});
const toQuestionDenial = (reason: string): object => ({
  hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "deny", message: reason } },
});

/**
 * The blocking form of one event. Only the two gating events and unknown ones have one: a blocked stop, for example,
 * would keep the agent running, so that an observing event is answered with nothing.
 */
export function toRefusal(eventName: string | null, reason: string): RuntimeReply {
  // Without a text on standard error the client does not honour exit code 2.
  const text = reason.trim() === "" ? "PAYLOAD_UNRECOGNIZED: refused" : reason;
  if (eventName === "PreToolUse") return toBlockingReply(toCallDenial(text), text);
  if (eventName === "PermissionRequest") return toBlockingReply(toQuestionDenial(text), text);
  if (eventName !== null && rules.has(eventName)) return noOpinion;
  return toBlockingReply({ decision: "block", reason: text }, text);
}

/** Tools whose input the client is known to replace; elsewhere the old input might run. */
const takesChangedInput = ({ tool, tool_alias }: GateRequest): boolean =>
  tool_alias === "Bash" || tool_alias === "apply_patch" || tool.startsWith("mcp.");

const toTicketOrNo = (body: object, { decision, approval }: GateAnswer): RuntimeReply =>
  decision === "require_approval" && approval !== undefined ? toTicketReply(body) : toJsonReply(body);

/** The client's own reply to an answered call. */
function toCallReply(request: GateRequest, answer: GateAnswer): RuntimeReply {
  switch (answer.decision) {
    // The client knows no bare `allow`: it would mark the hook as failed.
    case "allow":
      return answer.confirm === undefined ? noOpinion : toJsonReply(toCallDenial(toReason(answer)));
    case "modify":
      return answer.modified_input === undefined || !takesChangedInput(request)
        ? toJsonReply(toCallDenial(toReason(answer)))
        : toJsonReply({
            hookSpecificOutput: {
              hookEventName: "PreToolUse",
              // Needed for the changed input to count; the client's own approval prompt still comes.
              permissionDecision: "allow",
              updatedInput: answer.modified_input,
            },
          });
    case "require_approval":
      return toTicketOrNo(toCallDenial(toReason(answer)), answer);
    case "deny":
    case "defer":
      return toJsonReply(toCallDenial(toReason(answer)));
  }
}
/** The reply to the client's own question, where it takes no changed input. */
const toQuestionReply = (answer: GateAnswer): RuntimeReply =>
  answer.decision === "allow" && answer.confirm === undefined
    ? noOpinion
    : toTicketOrNo(toQuestionDenial(toReason(answer)), answer);

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
      const { request } = translation;
      const isQuestion = request.phase === "permission";
      if (answer === null)
        return toRefusal(
          isQuestion ? "PermissionRequest" : "PreToolUse",
          "GATE_UNAVAILABLE: no decision was made",
        );
      return isQuestion ? toQuestionReply(answer) : toCallReply(request, answer);
    }
  }
}
