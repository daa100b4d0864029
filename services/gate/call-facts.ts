import { toCorrelationId } from "./call-keys.ts";
import type { HoldFact } from "./facts-of-call.ts";
import type { GroupFacts, TenantFacts } from "./facts.ts";
import { lineMax, ofTenant, planKey } from "./facts.ts";
import type { CallPlace, GroupLedger, KnownFacts } from "./group-ledger.ts";
import type { HoldsOf } from "./hold-watch.ts";
import { findHolds } from "./holds.ts";
import type { QueuedCall } from "./queued-call.ts";
import { wantedCounters } from "./counters.ts";
import { wantedFacts } from "./stages/facts-needed.ts";

/** A gated call's facts, and what they were taken from. */
export interface KnownCall {
  readonly place: CallPlace;
  readonly facts: KnownFacts;
  /** Session → the version that was read: none of them may have moved at the commit. */
  readonly heldSessions: ReadonlyMap<string, number>;
  /** Labels of the session and of its root, as committed. */
  readonly committedLabels: ReadonlySet<string>;
  /** Labels that the session carries itself and its root does not; they move to the root with the link. */
  readonly ownLabels: readonly string[];
  /** The session is about to become a child. */
  readonly isLinking: boolean;
  /** Whose child it becomes, or is; itself: it has no parent. */
  readonly parentKey: string;
  /** The session, those above it, and its root last: what holds one of them holds the call. */
  readonly line: readonly string[];
  /** The walk up did not reach the root: what holds those further up is not known. */
  readonly isLineCut: boolean;
  readonly correlation: string | undefined;
  /** Agents between this session and what a person or an event from outside began. */
  readonly automationDepth: number;
  /** More than is stored: its parent was linked, or first heard of, after it. */
  readonly isDeeper: boolean;
  readonly counterKeys: readonly string[];
}

/**
 * Puts a call's facts together: the group's, seen from this call, with what earlier calls of the group change.
 * A session's labels are its root's and its own; a link to a root only ever adds to them.
 */
export function toKnownCall(
  queued: QueuedCall,
  sessionKey: string,
  tenant: TenantFacts,
  group: GroupFacts,
  ledger: GroupLedger,
  environment: string,
): KnownCall {
  const { work, policy } = queued;
  const own = group.sessions.get(sessionKey);
  const root = toRoot(sessionKey, queued.parentKey, group, ledger);
  const isLinking = root.key !== sessionKey && own?.root == null;
  const key = toPlanKey(queued);
  const plan = key === null ? undefined : group.plans.get(key);
  const parentKey = root.line[1] ?? sessionKey;
  const place: CallPlace = { sessionKey, rootKey: root.key, parentKey, planKey: key };
  const committed = new Set([...(own?.labels ?? []), ...root.labels]);
  const automationDepth = toAutomationDepth(queued, sessionKey, group, ledger);
  const isDeeper = automationDepth > Math.max(own?.automation_depth ?? 0, ledger.depthOf(sessionKey));
  const counterKeys =
    work.request === null ? [] : wantedCounters(work.request, work.tenantId, policy, group.serverMs);
  const facts: KnownFacts = {
    nowMs: group.serverMs,
    environment,
    tenant: { id: work.tenantId, ...tenant },
    session: {
      version: root.version,
      labels: [...committed].sort(),
      openApprovals: own?.open_approvals ?? 0,
      deferredSinceMs: plan?.deferredSinceMs ?? null,
      ...(automationDepth === 0 ? {} : { automationDepth }),
    },
    approval: plan?.approval ?? null,
    isRevoked: isRevoked(queued, group, queued.intentDigest),
    counters: Object.fromEntries(
      counterKeys.flatMap((one) => {
        const spent = group.counters.get(one);
        return spent === undefined ? [] : [[one, spent]];
      }),
    ),
    dated: Object.fromEntries(
      wantedFacts(policy, work.request).flatMap((name) => {
        const fact = group.dated.get(ofTenant(work.tenantId, name));
        return fact === undefined ? [] : [[name, fact]];
      }),
    ),
  };
  return {
    place,
    facts: ledger.view(place, facts),
    heldSessions: new Map([
      // A child's own row hardly changes any more: what counts is its root's.
      ...(own?.root == null || isDeeper ? [[sessionKey, own?.version ?? 0] as const] : []),
      [root.key, root.version],
    ]),
    committedLabels: committed,
    ownLabels: (own?.labels ?? []).filter((label) => !root.labels.includes(label)),
    isLinking,
    parentKey,
    line: root.line,
    isLineCut: isCut(root.line),
    correlation: own?.correlation_id ?? root.correlation,
    automationDepth,
    isDeeper,
    counterKeys,
  };
}

/** Far past every limit: sessions that name each other in a ring count on with each call. */
const depthCounted = 100;

/**
 * One more than the session's parent, as far as that one is known, and at least what was stored before. A session that
 * names nobody, or its own child, is as deep as it was.
 */
export function toAutomationDepth(
  { parentKey }: Pick<QueuedCall, "parentKey">,
  sessionKey: string,
  group: Pick<GroupFacts, "sessions">,
  ledger: Pick<GroupLedger, "depthOf">,
): number {
  const depthOf = (key: string): number =>
    Math.max(group.sessions.get(key)?.automation_depth ?? 0, ledger.depthOf(key));
  const own = depthOf(sessionKey);
  if (parentKey === null || group.sessions.get(parentKey)?.root?.key === sessionKey) return own;
  return Math.max(own, Math.min(depthOf(parentKey) + 1, depthCounted));
}

/** Key of a call's plan; null: it has none. */
export function toPlanKey({ sessionKey, work, intentDigest }: QueuedCall): string | null {
  return sessionKey === null || intentDigest === null
    ? null
    : planKey({ sessionKey, agentId: work.call.agentId ?? "", intentDigest });
}

/** Whether a person revoked a plan of this call, by its digest. */
export function isRevoked({ work }: QueuedCall, group: GroupFacts, digest: string | null): boolean {
  return digest !== null && group.revoked.has(ofTenant(work.tenantId, digest));
}

/** What holds a call back. */
export function findHoldsOfCall(
  { work, sessionKey }: QueuedCall,
  holdsOf: HoldsOf,
  place: { readonly correlationId: string; readonly line: readonly string[]; readonly nowMs: number },
): HoldFact[] {
  const holds = holdsOf(work.tenantId);
  if (holds.length === 0 || work.request === null) return [];
  return findHolds(
    holds,
    {
      tenantId: work.tenantId,
      runtime: work.runtime.kind,
      sessionId: work.request.session_id,
      agentId: work.call.agentId ?? null,
      userId: work.subject,
      tool: work.request.tool,
      correlationId: place.correlationId,
      sessionKeys: [...(sessionKey === null ? [] : [sessionKey]), ...place.line],
    },
    place.nowMs,
  );
}

/** Whether sessions above a call may be missing in its line; the first of it is the call's own. */
const isCut = (line: readonly string[]): boolean => line.length > lineMax;

/** Whether a call that was decided before is held back by now. */
export function isHeld(call: QueuedCall, group: GroupFacts, holdsOf: HoldsOf): boolean {
  const { sessionKey } = call;
  if (sessionKey === null) return false;
  const session = group.sessions.get(sessionKey);
  const rootKey = session?.root?.key ?? sessionKey;
  const correlationId = session === undefined ? toCorrelationId(rootKey) : `cor_${session.correlation_id}`;
  const line = session?.root?.line ?? [];
  if (isCut([sessionKey, ...line])) return true;
  return findHoldsOfCall(call, holdsOf, { correlationId, line, nowMs: group.serverMs }).length > 0;
}

interface Above {
  readonly key: string;
  readonly version: number;
  readonly labels: readonly string[];
  readonly correlation: string | undefined;
}

interface Root extends Above {
  /** From the session itself up to the root. */
  readonly line: readonly string[];
}

/** The root that is stored, or that an earlier call of the group named, or that this one names; else the session itself. */
function toRoot(sessionKey: string, parentKey: string | null, group: GroupFacts, ledger: GroupLedger): Root {
  const own = group.sessions.get(sessionKey);
  const named = own?.root?.key ?? ledger.parentOf(sessionKey) ?? parentKey;
  if (named === null) return { ...toPlain(sessionKey, group), line: [sessionKey] };
  const line = [sessionKey, ...(own?.root?.line ?? [named])];
  let root: Above =
    own?.root == null
      ? toPlain(named, group)
      : {
          key: own.root.key,
          version: own.root.version,
          labels: own.root.labels,
          correlation: own.correlation_id,
        };
  const seen = new Set([sessionKey]);
  // Up to the one that has no parent: a parent can itself be a child, by what is stored or by an earlier call.
  while (!seen.has(root.key)) {
    seen.add(root.key);
    const above = group.sessions.get(root.key);
    const linked = ledger.parentOf(root.key);
    if (above?.root != null) {
      const { key, version, labels } = above.root;
      root = { key, version, labels, correlation: above.correlation_id };
      line.push(...above.root.line);
    } else if (linked !== undefined) {
      root = toPlain(linked, group);
      line.push(linked);
    } else return { ...root, line };
  }
  // A session that names one of its own children as its parent stays a root; and a loop has none.
  return { ...toPlain(sessionKey, group), line: [sessionKey] };
}

function toPlain(key: string, group: GroupFacts): Above {
  const found = group.sessions.get(key);
  return {
    key,
    version: found?.version ?? 0,
    labels: found?.labels ?? [],
    correlation: found?.correlation_id,
  };
}
