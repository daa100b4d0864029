import type { Adapter, RuntimeReply, Translation } from "../../../../schemas/adapter.ts";
import type { GateAnswer } from "../../../../schemas/gate.ts";
import { noOpinion, toJsonReply } from "../../../platform/adapter-kit.ts";
import type { HookTable } from "../../../platform/hook-table.ts";
import { translateByTable } from "../../../platform/hook-table.ts";
import { toReason } from "../../../platform/refusal-text.ts";
import { rules } from "./events.ts";

/** Raised when the same message gives other events than before. */
const adapterVersion = "1.1.0";

const table: HookTable = {
  // A session is a thread, whichever way it is watched: hooks and App Server tell of the same one.
  runtime: "codex",
  version: adapterVersion,
  eventNameField: "method",
  permissionModeField: "permission_mode",
  idFields: { sessionId: "session_id", turnId: "turn_id", toolCallId: "call_id", agentId: "agent_id" },
  rules,
  endsOnce: true,
};

/** What the proxy does with a question: `reason` is for people and logs, since the server takes none. */
export interface ProxyOrder {
  readonly order: "yes" | "no" | "wait";
  readonly reason: string;
  /** Set with `wait`: when the ticket ends, UTC ISO 8601. */
  readonly until?: string;
}

const toOrder = (order: ProxyOrder): RuntimeReply => toJsonReply(order);

function toReply(translation: Translation, answer: GateAnswer | null): RuntimeReply {
  if (translation.kind === "observed") return noOpinion;
  if (translation.kind === "unrecognized" || answer === null)
    return toOrder({
      order: "no",
      reason: "PAYLOAD_UNRECOGNIZED: the adapter does not understand this message",
    });
  const reason = toReason(answer);
  switch (answer.decision) {
    case "allow":
      return toOrder({ order: answer.confirm === undefined ? "yes" : "no", reason });
    case "require_approval":
      // The turn is paused anyway: a person may take their time.
      return toOrder(
        answer.approval === undefined
          ? { order: "no", reason }
          : { order: "wait", reason, until: answer.approval.expires_at },
      );
    // The wire has no place for a changed input.
    case "modify":
    case "defer":
    case "deny":
      return toOrder({ order: "no", reason });
  }
}

/** The adapter of Codex's App Server, behind the proxy. */
export const codexAppServer: Adapter = {
  runtime: "codex-app-server",
  version: adapterVersion,
  translate: (payload, bodyBytes) => translateByTable(table, payload, bodyBytes),
  toReply,
  toRefusal: (_eventName, reason) =>
    toOrder({ order: "no", reason: reason.trim() === "" ? "PAYLOAD_UNRECOGNIZED: refused" : reason }),
};
