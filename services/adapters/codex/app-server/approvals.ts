import type { WireObject } from "./wire-message.ts";

/** Questions that move nothing but the client: they go through. */
export const clientMethods: readonly string[] = [
  "item/tool/requestUserInput",
  "account/chatgptAuthTokens/refresh",
  "attestation/generate",
  "currentTime/read",
];

/** Whether a question is one that the gate answers. A server of tools may also ask its user something: that goes through. */
export function isGating(method: string, params: WireObject): boolean {
  if (clientMethods.includes(method)) return false;
  if (method !== "mcpServer/elicitation/request") return true;
  const meta = params["_meta"];
  // Without the mark it is the server's own question. Anything else under `_meta` is not known, and so no dialog.
  return meta !== null && meta !== undefined;
}

/** The no of a question. It goes on with the turn: `cancel` would end it. */
export function toNo(method: string, reason: string): unknown {
  switch (method) {
    case "item/permissions/requestApproval":
      return { permissions: {}, scope: "turn" };
    case "mcpServer/elicitation/request":
      return { action: "decline", content: null, _meta: null };
    case "item/tool/call":
      return { contentItems: [{ type: "inputText", text: reason }], success: false };
    // Of an older protocol; never seen to be sent, and never said yes to.
    case "execCommandApproval":
    case "applyPatchApproval":
      return { decision: "denied" };
    default:
      return { decision: "decline" };
  }
}

/** The yes of a question: to this once, and never for a session or a rule. Null: the client has to do it. */
export function toYes(method: string, params: WireObject): unknown {
  switch (method) {
    case "item/commandExecution/requestApproval":
    case "item/fileChange/requestApproval":
      return { decision: "accept" };
    case "item/permissions/requestApproval":
      return { permissions: params["permissions"] ?? {}, scope: "turn" };
    case "mcpServer/elicitation/request":
      return { action: "accept", content: null, _meta: null };
    case "item/tool/call":
      return null;
    default:
      return toNo(method, "");
  }
}
