import type { RuntimeReply, Translation } from "../../../schemas/adapter.ts";
import type { GateAnswer, GateRequest } from "../../../schemas/gate.ts";
import { noOpinion, toJsonReply } from "../../platform/adapter-kit.ts";
import { toPluginAnswer } from "../../platform/plugin-reply.ts";
import { toReason } from "../../platform/refusal-text.ts";
import { events } from "./events.ts";
import { shellVersion } from "./translate.ts";

/** A no in both forms: the plugin reads `decision` and `reason`, a shell hook hands `action` and `message` to the client. */
function toDenial(reason: string): RuntimeReply {
  // An empty message is no message there, and the tool runs.
  const text = reason.trim() === "" ? "PAYLOAD_UNRECOGNIZED: refused" : reason;
  return toJsonReply({ decision: "deny", reason: text, action: "block", message: text });
}

const isObserving = (eventName: string | null): boolean =>
  eventName !== null && events.get(eventName)?.rule.gating === false;

/** The blocking form of one event; an observing event is answered with nothing. */
export const toRefusal = (eventName: string | null, reason: string): RuntimeReply =>
  isObserving(eventName) ? noOpinion : toDenial(reason);

/** What a shell hook can say is a no; anything else it prints would be ignored, and the tool would run. */
const toShellReply = (answer: GateAnswer): RuntimeReply =>
  answer.decision === "allow" && answer.confirm === undefined ? noOpinion : toDenial(toReason(answer));

function toCallReply(version: string, request: GateRequest, answer: GateAnswer): RuntimeReply {
  if (version === shellVersion) return toShellReply(answer);
  return answer.decision === "deny" || answer.decision === "defer"
    ? toDenial(toReason(answer))
    : toPluginAnswer(request, answer);
}

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
    case "gated":
      return answer === null
        ? toDenial("GATE_UNAVAILABLE: no decision was made")
        : toCallReply(translation.runtime.adapter_version, translation.request, answer);
  }
}
