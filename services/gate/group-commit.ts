import { Fault } from "../../schemas/faults.ts";
import type { Clock } from "../platform/clock.ts";
import { newEventId, toUuid } from "../platform/ids.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database, Statement } from "../platform/postgres.ts";
import type { TenantKey, TenantKeys } from "../platform/vault-seal.ts";
import { commitStatement } from "./commit-statement.ts";
import type { Stage } from "./decide.ts";
import type { GroupFacts } from "./facts.ts";
import { loadFacts } from "./facts.ts";
import { toRepeatedAnswer } from "./answer.ts";
import type { HookOutcome } from "./hook-work.ts";
import type { PreparedCall } from "./prepare-call.ts";
import { prepareCall } from "./prepare-call.ts";
import type { QueuedCall } from "./queued-call.ts";
import { isStillOpen } from "./queued-call.ts";
import { toConsequences } from "./record.ts";
import type { Bundle } from "./rules.ts";
import type { CommitConflict, HookCallRow, SessionRow } from "./store.ts";
import { toCommitRefusal } from "./store.ts";

export interface GroupCommitOptions {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly keys: TenantKeys;
  readonly bundle: Bundle;
  readonly clock: Clock;
  readonly environment: string;
  readonly stages: readonly Stage[];
  /** Times that a call is decided on facts that changed meanwhile, before it is denied. */
  readonly maxAttempts: number;
  /** Largest event that the broker takes, as encoded. */
  readonly eventMaxBytes: number;
}

/** A call whose commit took so long that its caller was told no. */
export interface LateCall {
  /** The right that nobody was given; null when the decision gives none. */
  readonly capabilityId: string | null;
}

export interface GroupResult {
  /** Calls that were written. */
  readonly committed: number;
  /** Of these, the ones that were late. */
  readonly late: readonly LateCall[];
  /** Calls whose facts changed, or that another gate took: to be decided again. */
  readonly lost: readonly QueuedCall[];
  /** The same call as another one of the group: its answer is among the facts of the next round. */
  readonly followers: readonly QueuedCall[];
}

/**
 * One round for a group: its facts in one query, the rulings, one statement that writes it. Every call that was written is
 * answered, after the commit. Throws when nothing was written.
 */
export async function commitGroup(
  calls: readonly QueuedCall[],
  options: GroupCommitOptions,
): Promise<GroupResult> {
  const { database, clock } = options;
  const facts = await loadFacts(database, {
    tenantIds: unique(calls.map(({ work }) => work.tenantId)),
    sessionKeys: unique(calls.map(({ sessionKey }) => sessionKey)),
    decisionKeys: unique(calls.map(({ work, callKey }) => (work.request === null ? null : callKey))),
    hookKeys: unique(calls.map(({ work, callKey }) => (work.request === null ? callKey : null))),
    anchorKeys: unique(calls.flatMap(({ anchorKeys }) => anchorKeys)),
  });
  const open = calls.filter((call) => !call.isSettled && !answerAtOnce(call, facts));
  const { leaders, followers } = toLeaders(open);
  if (leaders.length === 0) return { committed: 0, late: [], lost: [], followers };
  const context = {
    ...options,
    facts,
    nowMs: clock.nowMs(),
    tenantKeys: await openKeys(options.keys, leaders),
  };
  const prepared = leaders.map((call) => prepareCall(call, context));
  const committed = await commitWhatHolds(prepared, { ...options, facts, nowMs: context.nowMs });
  if (committed.length > 0) notifyOutbox(database);
  const late = committed
    .filter(({ queued }) => queued.isSettled)
    .map(({ decision }) => ({ capabilityId: decision?.answer.capability?.id ?? null }));
  for (const one of committed) one.queued.answer(toOutcome(one));
  const written = new Set(committed.map(({ queued }) => queued));
  return {
    committed: committed.length,
    late,
    lost: leaders.filter((call) => !written.has(call) && !call.isSettled),
    followers,
  };
}

interface CommitContext extends GroupCommitOptions {
  readonly facts: GroupFacts;
  readonly nowMs: number;
}

/**
 * Writes the group. The server writes nothing of it when one call does not hold; then the others are sent again, and the
 * calls that did not hold are left to the next round. From sending to the server's answer nobody tells a caller no:
 * whether its call is decided is not known.
 * INVARIANT: a caller that was told no finds no allow in the trail, as long as the database answers a commit within
 * `commitGraceMs` (test/integration/gate-group.test.ts "does not record an allow for a caller that gave up").
 */
function commitWhatHolds(
  prepared: readonly PreparedCall[],
  context: CommitContext,
): Promise<readonly PreparedCall[]> {
  return context.database.connected(async (tx) => {
    let left = prepared;
    for (;;) {
      const nowMs = performance.now();
      left = left.filter(({ queued }) => isStillOpen(queued, nowMs));
      if (left.length === 0) return [];
      const statement = toStatement(left, context);
      for (const { queued } of left) queued.isCommitting = true;
      try {
        await tx.query(statement);
        return left;
      } catch (error) {
        const refusal = toCommitRefusal(error);
        if (refusal === null) throw error;
        left = refusal === "too_late" ? withoutEarliest(left) : left.filter((one) => holds(one, refusal));
      } finally {
        for (const { queued } of prepared) queued.isCommitting = false;
      }
    }
  });
}

/** The time of the earliest is up, as the server measured it; so each round has less to do than the one before. */
function withoutEarliest(calls: readonly PreparedCall[]): readonly PreparedCall[] {
  const earliestMs = Math.min(...calls.map(({ queued }) => queued.deadlineMs));
  return calls.filter(({ queued }) => isStillOpen(queued, earliestMs));
}

/**
 * Decisions whose facts are still the same, of calls that nobody took. Observations depend on nothing.
 * INVARIANT: a freeze between the decision's facts and its commit is seen
 * (test/integration/gate-group.test.ts "decides again when the tenant is frozen between facts and commit").
 */
function holds(
  { isUnconditional, work, sessionKey, decisionRow, queued }: PreparedCall,
  { tenants, sessions, calls }: CommitConflict,
): boolean {
  if (!isUnconditional && (tenants.has(work.tenantId) || sessions.has(sessionKey ?? ""))) return false;
  return !calls.has(decisionRow === null ? (queued.callKey ?? "") : toUuid(decisionRow.decisionId));
}

/** Everything that the calls write, encoded; last of all the time that is left for it. */
function toStatement(
  prepared: readonly PreparedCall[],
  { facts, nowMs, codec, clock, environment, bundle, eventMaxBytes }: CommitContext,
): Statement {
  const { envelopes, anchors, capabilities } = toConsequences(prepared, {
    nowMs,
    environment,
    newEventId: () => newEventId(clock),
    anchorOf: (key) => facts.anchors.get(key),
  });
  const conditional = prepared.filter((one) => !one.isUnconditional);
  const outbox = toOutboxRows(codec, envelopes);
  const tooLarge = outbox.find(({ payload }) => payload.length > eventMaxBytes);
  if (tooLarge !== undefined) {
    // Before the commit: later the relay could only park it, behind an answer that is out.
    throw new Fault(
      "RECORD_TOO_LARGE",
      `an event \`${tooLarge.type}\` of ${String(tooLarge.payload.length)} bytes`,
    );
  }
  const earliestMs = Math.min(...prepared.map(({ queued }) => queued.deadlineMs));
  return commitStatement({
    nowMs,
    budgetMs: Math.max(0, earliestMs - performance.now()),
    untilServerMs: earliestMs + facts.toServerMs,
    policyRevision: bundle.revision,
    sessions: toNewSessions(prepared, facts),
    heldTenants: new Map(conditional.map((one) => [one.work.tenantId, one.tenantVersion])),
    heldSessions: new Map(conditional.map((one) => [one.sessionKey ?? "", one.sessionVersion])),
    decisions: prepared.flatMap(({ decisionRow }) => (decisionRow === null ? [] : [decisionRow])),
    calls: prepared.flatMap(({ queued, decisionRow }): HookCallRow[] =>
      decisionRow === null && queued.callKey !== null
        ? [{ callKey: queued.callKey, tenantId: queued.work.tenantId }]
        : [],
    ),
    anchors,
    capabilities,
    evidence: prepared.flatMap(({ evidence }) => (evidence === null ? [] : [evidence])),
    outbox,
  });
}

/** What needs no decision: an unknown tenant, and a call that was decided or recorded before. */
function answerAtOnce(call: QueuedCall, facts: GroupFacts): boolean {
  const outcome = knownOutcome(call, facts);
  if (outcome !== null) call.answer(outcome);
  return outcome !== null;
}

function knownOutcome({ work, callKey }: QueuedCall, facts: GroupFacts): HookOutcome | null {
  const tenant = facts.tenants.get(work.tenantId);
  if (tenant === undefined) return { kind: "tenant_unknown" };
  if (callKey === null) return null;
  const stored = facts.answers.get(callKey);
  if (stored !== undefined) return { kind: "answered", answer: toRepeatedAnswer(stored, tenant.state) };
  return facts.recorded.has(callKey) ? { kind: "recorded", repeated: true } : null;
}

/** The first of each call, and the others. */
function toLeaders(calls: readonly QueuedCall[]): { leaders: QueuedCall[]; followers: QueuedCall[] } {
  const seen = new Set<string>();
  const leaders: QueuedCall[] = [];
  const followers: QueuedCall[] = [];
  for (const call of calls) {
    if (call.callKey !== null && seen.has(call.callKey)) {
      followers.push(call);
      continue;
    }
    if (call.callKey !== null) seen.add(call.callKey);
    leaders.push(call);
  }
  return { leaders, followers };
}

async function openKeys(keys: TenantKeys, calls: readonly QueuedCall[]): Promise<Map<string, TenantKey>> {
  const opened = new Map<string, TenantKey>();
  for (const tenantId of unique(calls.map(({ work }) => work.tenantId))) {
    opened.set(tenantId, await keys.current(tenantId));
  }
  return opened;
}

function toNewSessions(prepared: readonly PreparedCall[], facts: GroupFacts): SessionRow[] {
  const rows = new Map<string, SessionRow>();
  for (const { sessionKey, work, correlationId } of prepared) {
    const { sessionId } = work.call;
    if (sessionKey === null || sessionId === undefined || facts.sessions.has(sessionKey)) {
      continue;
    }
    rows.set(sessionKey, {
      sessionKey,
      tenantId: work.tenantId,
      runtime: work.runtime.kind,
      sessionId,
      correlationId,
    });
  }
  return [...rows.values()];
}

function toOutcome({ decision }: PreparedCall): HookOutcome {
  return decision === null
    ? { kind: "recorded", repeated: false }
    : { kind: "answered", answer: decision.answer };
}

function unique(values: readonly (string | null)[]): string[] {
  return [...new Set(values.filter((one) => one !== null))].sort();
}
