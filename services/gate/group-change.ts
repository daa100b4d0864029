import { toUuid } from "../platform/ids.ts";
import type { CallChange, PlanName } from "./call-change.ts";
import type { GroupFacts } from "./facts.ts";
import { openApprovalsMax } from "./stages/approval-step.ts";
import type { SessionRow } from "./store.ts";
import { toJsonColumn } from "./store.ts";

/** A call of a group with what its decision read and changes. */
export interface ChangingCall {
  readonly tenantId: string;
  /** Null: a result, which is recorded and not decided. */
  readonly decisionId: string | null;
  readonly callKey: string | null;
  readonly change: CallChange;
}

/** What a group changes beside its decisions. */
export interface GroupChange {
  /** The argument of `gate.apply_consequences`, but for its time; null: nothing. */
  readonly parts: object | null;
  /** Some session is labelled or linked: then `parts` holds all sessions of the group, and the statement none. */
  readonly holdsSessions: boolean;
}

export interface GroupHolds {
  readonly tenants: ReadonlyMap<string, number>;
  /** Null: whatever its version is by then. */
  readonly sessions: ReadonlyMap<string, number | null>;
  /** Sessions that are perhaps not there yet. */
  readonly newSessions: readonly SessionRow[];
}

/** Sums up what the calls of a group change. */
export function toGroupChange(
  calls: readonly ChangingCall[],
  holds: GroupHolds,
  facts: GroupFacts,
): GroupChange {
  const sessions = toSessionChanges(calls, facts);
  const parts = {
    counters: toCounters(calls),
    requested: calls.flatMap(({ change }) => toRequested(change)),
    consumed: calls.flatMap(({ decisionId, callKey, change: { consumed } }) =>
      consumed === null || decisionId === null
        ? []
        : [
            {
              id: toUuid(consumed.approvalId),
              decision: toUuid(decisionId),
              call: callKey,
              plan_digest: consumed.planDigest,
            },
          ],
    ),
    voided: calls.flatMap(({ change: { voided } }) => (voided === null ? [] : [toUuid(voided.approvalId)])),
    // Each plan once: several calls of a group can put off the same one.
    deferred: onceByPlan(
      calls.flatMap(({ tenantId, change: { deferred } }) =>
        deferred === null
          ? []
          : [
              {
                ...toPlanKeys(deferred),
                tenant: tenantId,
                until: new Date(deferred.untilMs).toISOString(),
              },
            ],
      ),
    ),
    resumed: calls.flatMap(({ change: { resumed } }) => (resumed === null ? [] : [toPlanKeys(resumed)])),
    superseded: calls.flatMap(({ decisionId, callKey, change: { supersedes, endedRight } }) =>
      supersedes === null || callKey === null || decisionId === null
        ? []
        : [
            {
              decision: toUuid(supersedes),
              call: callKey,
              by: toUuid(decisionId),
              ends: endedRight === null ? null : toUuid(endedRight.capabilityId),
            },
          ],
    ),
    sealed: calls.flatMap(({ decisionId, tenantId, change: { sealedInput } }) =>
      sealedInput === null || decisionId === null
        ? []
        : [{ decision: toUuid(decisionId), tenant: tenantId, sealed: sealedInput.toString("base64") }],
    ),
  };
  const holdsSessions = sessions.size > 0;
  if (!holdsSessions && Object.values(parts).every((one) => one.length === 0)) {
    return { parts: null, holdsSessions };
  }
  return {
    parts: {
      ...parts,
      tenants: holdsSessions ? [...holds.tenants.keys()] : [],
      sessions: holdsSessions
        ? [...holds.sessions].map(([key, version]) => ({
            key,
            version,
            labels: sessions.get(key)?.labels ?? [],
            root: sessions.get(key)?.root ?? null,
            depth: sessions.get(key)?.depth ?? 0,
          }))
        : [],
      new_sessions: holdsSessions
        ? holds.newSessions.map((row) => ({
            key: row.sessionKey,
            tenant: row.tenantId,
            runtime: row.runtime,
            id: row.sessionId,
            correlation: toUuid(row.correlationId),
          }))
        : [],
    },
    holdsSessions,
  };
}

/** The argument of `gate.apply_consequences`. */
export function toChangeJson(parts: object, atMs: number, budgetMs: number): string {
  return toJsonColumn({ ...parts, at: new Date(atMs).toISOString(), budget_ms: budgetMs });
}

interface SessionChange {
  readonly labels: string[];
  readonly root: string | null;
  readonly depth: number;
}

function toSessionChanges(calls: readonly ChangingCall[], facts: GroupFacts): Map<string, SessionChange> {
  const changes = new Map<string, SessionChange>();
  function merge(key: string, labels: readonly string[], root: string | null, depth: number): void {
    const before = changes.get(key);
    const all = [...new Set([...(before?.labels ?? []), ...labels])].sort();
    changes.set(key, { labels: all, root: before?.root ?? root, depth: Math.max(before?.depth ?? 0, depth) });
  }
  for (const { change } of calls) {
    if (change.isLinking || change.isDeeper)
      merge(change.sessionKey, [], change.isLinking ? change.parentKey : null, change.automationDepth);
    const known = facts.sessions.get(change.rootKey)?.labels ?? [];
    if (change.labels.some((label) => !known.includes(label))) merge(change.rootKey, change.labels, null, 0);
  }
  return changes;
}

/** Each key once, with all that the group spends; the smallest limit counts. */
function toCounters(calls: readonly ChangingCall[]): readonly object[] {
  const counters = new Map<
    string,
    { tenant: string; amount: number; limit: number; expires: string | null }
  >();
  for (const { tenantId, change } of calls) {
    for (const { key, amount, limit, expiresAtMs } of change.spends) {
      const before = counters.get(key);
      counters.set(key, {
        tenant: tenantId,
        amount: (before?.amount ?? 0) + amount,
        limit: Math.min(before?.limit ?? limit, limit),
        expires: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
      });
    }
  }
  return [...counters].map(([key, one]) => ({ key, ...one }));
}

function toRequested({ requested }: CallChange): readonly object[] {
  if (requested === null) return [];
  return [
    {
      id: toUuid(requested.approvalId),
      tenant: requested.tenantId,
      ...toPlanKeys(requested),
      plan_digest: requested.planDigest,
      decision: toUuid(requested.decisionId),
      correlation: toUuid(requested.correlationId),
      runtime: requested.runtime,
      tool: requested.tool,
      effect: requested.effectClass,
      score: requested.riskScore,
      risk: requested.risk,
      requester: requested.requester,
      plan: requested.plan,
      sealed: requested.planSealed.toString("base64"),
      constraints: requested.constraints,
      rules: requested.matchedRules,
      message: requested.message,
      revision: requested.policyRevision,
      expires: requested.expiresAt,
      max_open: openApprovalsMax,
    },
  ];
}

function toPlanKeys({ sessionKey, agentId, intentDigest }: PlanName): {
  session: string;
  agent: string;
  intent: string;
} {
  return { session: sessionKey, agent: agentId, intent: intentDigest };
}

function onceByPlan<T extends { session: string; agent: string; intent: string }>(rows: readonly T[]): T[] {
  return [
    ...new Map(rows.map((row) => [JSON.stringify([row.session, row.agent, row.intent]), row])).values(),
  ];
}
