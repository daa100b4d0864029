import type { Facts } from "./facts-of-call.ts";
import type { KnownApproval } from "./facts.ts";
import type { Spend } from "./ruling.ts";

/** A call's facts as its group knows them. */
export interface KnownFacts extends Facts {
  readonly approval: KnownApproval | null;
}

/** Where in a group's facts a call stands. */
export interface CallPlace {
  readonly sessionKey: string;
  readonly rootKey: string;
  /** Whose child the session is, or becomes; absent: the root's. */
  readonly parentKey?: string;
  /** Null: the plan has no digest, and nothing is found by it. */
  readonly planKey: string | null;
}

/** What a decided call changes of what later calls of its group know. */
export interface LedgerEntry {
  readonly labels: readonly string[];
  /** The session became the root's child. */
  readonly isLinked: boolean;
  readonly automationDepth: number;
  readonly spends: readonly Spend[];
  /** What its plan's newest approval became; null: nothing changed. */
  readonly approval: KnownApproval | null;
  readonly isApprovalRequested: boolean;
  /** When the plan was put off first; null: it is not put off any more. Undefined: nothing changed. */
  readonly deferredSinceMs?: number | null;
}

/** What earlier calls of a group have changed, as if each had been committed before the next one was decided. */
export interface GroupLedger {
  /** Whose child an earlier call of the group made the session. */
  parentOf(sessionKey: string): string | undefined;
  /** The depth that an earlier call of the group found the session at; 0: none did. */
  depthOf(sessionKey: string): number;
  /** A call's facts with what earlier calls changed. */
  view(place: CallPlace, facts: KnownFacts): KnownFacts;
  note(place: CallPlace, entry: LedgerEntry): void;
}

/**
 * INVARIANT: calls of one group see each other as calls of two groups do
 * (services/gate/group-ledger.test.ts; test/integration/gate-state.test.ts "lets one of sixteen pass").
 */
export function createGroupLedger(): GroupLedger {
  const parents = new Map<string, string>();
  const depths = new Map<string, number>();
  const labels = new Map<string, Set<string>>();
  const spent = new Map<string, number>();
  const approvals = new Map<string, KnownApproval>();
  const opened = new Map<string, number>();
  const deferred = new Map<string, number | null>();
  let isEmpty = true;
  return {
    parentOf: (sessionKey) => parents.get(sessionKey),
    depthOf: (sessionKey) => depths.get(sessionKey) ?? 0,
    view({ sessionKey, rootKey, planKey }, facts) {
      if (isEmpty) return facts;
      const added = [...(labels.get(rootKey) ?? []), ...(labels.get(sessionKey) ?? [])];
      const counters: Record<string, number> = { ...facts.counters };
      for (const [key, amount] of spent) counters[key] = (counters[key] ?? 0) + amount;
      const since = planKey === null ? undefined : deferred.get(planKey);
      return Object.assign({}, facts, {
        session: Object.assign({}, facts.session, {
          labels:
            added.length === 0
              ? facts.session.labels
              : [...new Set([...facts.session.labels, ...added])].sort(),
          openApprovals: facts.session.openApprovals + (opened.get(sessionKey) ?? 0),
          deferredSinceMs: since === undefined ? facts.session.deferredSinceMs : since,
        }),
        approval: (planKey === null ? undefined : approvals.get(planKey)) ?? facts.approval,
        counters,
      });
    },
    note({ sessionKey, rootKey, parentKey = rootKey, planKey }, entry) {
      isEmpty = false;
      if (entry.isLinked) parents.set(sessionKey, parentKey);
      depths.set(sessionKey, Math.max(entry.automationDepth, depths.get(sessionKey) ?? 0));
      if (entry.labels.length > 0) {
        labels.set(rootKey, new Set([...(labels.get(rootKey) ?? []), ...entry.labels]));
      }
      for (const { key, amount } of entry.spends) spent.set(key, (spent.get(key) ?? 0) + amount);
      if (entry.isApprovalRequested) opened.set(sessionKey, (opened.get(sessionKey) ?? 0) + 1);
      if (planKey === null) return;
      if (entry.approval !== null) approvals.set(planKey, entry.approval);
      if (entry.deferredSinceMs !== undefined) deferred.set(planKey, entry.deferredSinceMs);
    },
  };
}
