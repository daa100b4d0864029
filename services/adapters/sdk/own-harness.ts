import type { Adapter, RuntimeReply } from "../../../schemas/adapter.ts";
import { noOpinion, toBlockingReply } from "../../platform/adapter-kit.ts";
import { rules } from "./events.ts";
import { adapterVersion, translate } from "./translate.ts";

/** The SDK's events ask nothing, so that only one that nobody knows is told no. */
function toRefusal(eventName: string | null, reason: string): RuntimeReply {
  if (eventName !== null && rules.has(eventName)) return noOpinion;
  return toBlockingReply({ decision: "deny", reason }, reason);
}

/** The adapter of harnesses that use the SDK; what they ask goes to `/v1/gate/decide` as runtime `own`. */
export const ownHarness: Adapter = {
  runtime: "own",
  version: adapterVersion,
  translate,
  toReply: (translation) =>
    translation.kind === "unrecognized"
      ? toRefusal(
          translation.eventName,
          `PAYLOAD_UNRECOGNIZED: the SDK adapter ${adapterVersion} does not know this event`,
        )
      : noOpinion,
  toRefusal,
};
