import type { Adapter, RuntimeReply } from "../../schemas/adapter.ts";
import type { Fault, FaultCode } from "../../schemas/faults.ts";
import { faultTable } from "../../schemas/faults.ts";
import { maskText } from "../platform/mask.ts";

const advice: Readonly<Partial<Record<FaultCode, string>>> = {
  BODY_TOO_LARGE: "do it in smaller calls",
  MEDIA_TYPE_UNSUPPORTED: "the hook has to send application/json; ask whoever installed it",
  TOKEN_MISSING: "a person has to give the hook its token",
  TOKEN_INVALID: "a person has to give the hook a new token",
  ROLE_MISSING: "a person has to give the hook a token with the role runtime",
  TENANT_UNKNOWN: "a person has to give the hook a token of a tenant that is served here",
};

/** What an agent reads of a call that the gate refused without a decision: code, what is wrong, what to do. */
export function toRefusalText(code: FaultCode, detail: string = faultTable[code].text): string {
  return `${code}: ${detail}; ${advice[code] ?? "nothing was allowed, try again"}`;
}

/**
 * The blocking form of a call that nobody has read, so that its event is not known. A status of 4xx or 5xx would only
 * mark the hook as failed, and the client would run the tool.
 * INVARIANT: once the runtime is known, no failure leaves as a status (test/integration/gate-http.test.ts).
 */
export function toUnreadRefusal(adapter: Adapter, fault: Fault): RuntimeReply {
  // Of our own failures only the code's text leaves, as in problem details.
  const detail = fault.kind === "refused" ? maskText(fault.message) : undefined;
  return adapter.toRefusal(null, toRefusalText(fault.code, detail));
}
