import type { Anchor, CallIdentity } from "../../schemas/adapter.ts";
import { derivedUuid } from "../platform/ids.ts";

/** Names are joined as JSON, so that no two lists give one name. */
function keyOf(...parts: readonly (string | null)[]): string {
  return derivedUuid(JSON.stringify(parts));
}

/** Key of a runtime's session within its tenant. */
export function toSessionKey(tenantId: string, runtime: string, sessionId: string): string {
  return keyOf("session", tenantId, runtime, sessionId);
}

/** The correlation of a root session: one user goal, the same whoever computes it. */
export function toCorrelationId(sessionKey: string): string {
  return `cor_${keyOf("correlation", sessionKey)}`;
}

/** Key of an anchor within its session. */
export function toAnchorKey(sessionKey: string, anchor: Anchor): string {
  return keyOf("anchor", sessionKey, anchor.scope, anchor.id);
}

/**
 * Key of a hook call: session, turn, call, phase and what is asked. Null without a call id: then each call is new.
 * A call of a child agent is another one than its parent's.
 */
export function toCallKey(
  sessionKey: string,
  call: Partial<CallIdentity>,
  digest: string | null,
): string | null {
  if (call.toolCallId === undefined) return null;
  return keyOf(
    "call",
    sessionKey,
    call.turnId ?? null,
    call.toolCallId,
    call.agentId ?? null,
    call.phase ?? null,
    digest,
  );
}
