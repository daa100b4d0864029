import type { RuntimeReply, Translation } from "../../schemas/adapter.ts";
import type { GateAnswer, GateRequest, JsonObject } from "../../schemas/gate.ts";
import { noOpinion, toJsonReply } from "./adapter-kit.ts";
import { toJsonPreview } from "./masked-preview.ts";
import { toConfirmText, toReason } from "./refusal-text.ts";

/**
 * What a plugin of ours inside a runtime is told. Only an explicit yes lets the tool run: whatever else a plugin reads, it
 * refuses in the form that its runtime honours.
 */
export type PluginAnswer =
  | { readonly decision: "allow" }
  | { readonly decision: "modify"; readonly input: JsonObject }
  | { readonly decision: "deny"; readonly reason: string }
  /** Allowed if the user agrees in the runtime's own dialog. Only a plugin that said it has one is told so. */
  | {
      readonly decision: "confirm";
      readonly reason: string;
      /** The call as a person may read it wherever the dialog shows: secrets masked. */
      readonly what: string;
    }
  /** A person has to agree first; where the runtime can pause it does, and asks again afterwards. */
  | { readonly decision: "ask"; readonly reason: string; readonly approval_id: string };

const toAnswerReply = (answer: PluginAnswer): RuntimeReply => toJsonReply(answer);

/** A no for a plugin; never without a reason. */
export const toPluginDenial = (reason: string): RuntimeReply =>
  toAnswerReply({
    decision: "deny",
    reason: reason.trim() === "" ? "PAYLOAD_UNRECOGNIZED: refused" : reason,
  });

const whatMaxChars = 240;

/** The answer to a gated call as a plugin reads it. */
export function toPluginAnswer({ tool_alias, tool, input }: GateRequest, answer: GateAnswer): RuntimeReply {
  if (answer.confirm !== undefined && answer.decision === "allow") {
    const what = `${tool_alias ?? tool} ${toJsonPreview(input, whatMaxChars)}`;
    return toAnswerReply({ decision: "confirm", reason: toConfirmText(answer.confirm), what });
  }
  switch (answer.decision) {
    case "allow":
      return toAnswerReply({ decision: "allow" });
    case "modify":
      // A dialog about an input that nobody asked for is one question too many.
      return answer.modified_input === undefined || answer.confirm !== undefined
        ? toPluginDenial(toReason(answer))
        : toAnswerReply({ decision: "modify", input: answer.modified_input });
    case "require_approval":
      return answer.approval === undefined
        ? toPluginDenial(toReason(answer))
        : toAnswerReply({ decision: "ask", reason: toReason(answer), approval_id: answer.approval.id });
    case "deny":
    case "defer":
      return toPluginDenial(toReason(answer));
  }
}

/** The blocking form of an event. An observing one is answered with nothing: nothing waits for it. */
export const toPluginRefusal = (isObserving: boolean, reason: string): RuntimeReply =>
  isObserving ? noOpinion : toPluginDenial(reason);

/** The reply to any translated payload of a plugin; a gated one without an answer is refused. */
export function toPluginReply(
  translation: Translation,
  answer: GateAnswer | null,
  isObserving: (eventName: string | null) => boolean,
): RuntimeReply {
  switch (translation.kind) {
    case "observed":
      return noOpinion;
    case "unrecognized":
      return toPluginRefusal(
        isObserving(translation.eventName),
        "PAYLOAD_UNRECOGNIZED: the adapter does not understand this payload",
      );
    case "gated":
      return answer === null
        ? toPluginDenial("GATE_UNAVAILABLE: no decision was made")
        : toPluginAnswer(translation.request, answer);
  }
}
