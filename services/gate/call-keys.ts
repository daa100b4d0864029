import type { Anchor, CallIdentity } from "../../schemas/adapter.ts";
import { derivedUuid } from "../platform/ids.ts";

/** Names are joined as JSON, so that no two lists give one name. */
function keyOf(...parts: readonly (string | null)[]): string {
  return derivedUuid(JSON.stringify(parts));
}

/** Keys of sessions and of what lasts like them come again with every call. */
const known = new Map<string, string>();
const knownMax = 4_096;

/** The same as `keyOf`, remembered. */
function lastingKeyOf(...parts: readonly string[]): string {
  const name = JSON.stringify(parts);
  let key = known.get(name);
  if (key === undefined) {
    if (known.size >= knownMax) known.clear();
    key = derivedUuid(name);
    known.set(name, key);
  }
  return key;
}

/** Key of a runtime's session within its tenant. */
export function toSessionKey(tenantId: string, runtime: string, sessionId: string): string {
  return lastingKeyOf("session", tenantId, runtime, sessionId);
}

/** The correlation of a root session: one user goal, the same whoever computes it. */
export function toCorrelationId(sessionKey: string): string {
  return `cor_${lastingKeyOf("correlation", sessionKey)}`;
}

/** Key of an anchor within its session. */
export function toAnchorKey(sessionKey: string, anchor: Anchor): string {
  const keyed = anchor.scope === "call" ? keyOf : lastingKeyOf;
  return keyed("anchor", sessionKey, anchor.scope, anchor.id);
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
