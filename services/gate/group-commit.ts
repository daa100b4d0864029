import type { Clock } from "../platform/clock.ts";
import { newEventId } from "../platform/ids.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import type { TenantKey, TenantKeys } from "../platform/vault-seal.ts";
import type { Stage } from "./decide.ts";
import type { GroupFacts } from "./facts.ts";
import { loadFacts } from "./facts.ts";
import { toRepeatedAnswer } from "./answer.ts";
import type { HookOutcome } from "./hook-work.ts";
import type { PreparedCall } from "./prepare-call.ts";
import { prepareCall } from "./prepare-call.ts";
import type { QueuedCall } from "./queued-call.ts";
import { toConsequences } from "./record.ts";
import type { Bundle } from "./rules.ts";
import type { HookCallRow, SessionRow } from "./store.ts";
import { claimCalls, holdVersions, insertSessions, saveConsequences } from "./store.ts";

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
}

export interface GroupResult {
  /** Calls that were written. */
  readonly committed: number;
  /** Of these, the ones whose COMMIT took so long that their caller was told no. */
  readonly late: number;
  /** Calls whose facts changed, or that another gate took: to be decided again. */
  readonly lost: readonly QueuedCall[];
  /** The same call as another one of the group: its answer is among the facts of the next round. */
  readonly followers: readonly QueuedCall[];
}

/**
 * One round for a group: its facts in one query, the rulings, one transaction. Every call that was written is
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
    callKeys: unique(calls.map(({ callKey }) => callKey)),
    anchorKeys: unique(calls.flatMap(({ anchorKeys }) => anchorKeys)),
  });
  const open = calls.filter((call) => !call.isSettled && !answerAtOnce(call, facts));
  const { leaders, followers } = toLeaders(open);
  if (leaders.length === 0) return { committed: 0, late: 0, lost: [], followers };
  const context = {
    ...options,
    facts,
    nowMs: clock.nowMs(),
    tenantKeys: await openKeys(options.keys, leaders),
  };
  const prepared = leaders.map((call) => prepareCall(call, context));
  const committed = await commitOrUndo(database, leaders, (tx) =>
    write(tx, prepared, facts, context.nowMs, options),
  );
  if (committed.length > 0) notifyOutbox(database);
  const late = committed.filter(({ queued }) => queued.isSettled).length;
  for (const one of committed) one.queued.answer(toOutcome(one));
  const written = new Set(committed.map(({ queued }) => queued));
  return {
    committed: committed.length,
    late,
    lost: leaders.filter((call) => !written.has(call)),
    followers,
  };
}

/** A caller gave up between the claim of its call and the commit: the others' work is done again without it. */
export class CallerGaveUp extends Error {}

/**
 * Commits what `work` wrote, unless a caller of it was told no meanwhile. From here to the database's answer nobody
 * tells a caller no: whether the call is decided is not known.
 * INVARIANT: a caller that was told no finds no allow in the trail, as long as the database answers a COMMIT within
 * `commitGraceMs` (test/integration/gate-group.test.ts "does not record an allow for a caller that gave up").
 */
async function commitOrUndo(
  database: Database,
  calls: readonly QueuedCall[],
  work: (tx: Tx) => Promise<readonly PreparedCall[]>,
): Promise<readonly PreparedCall[]> {
  try {
    return await database.transaction(async (tx) => {
      const won = await work(tx);
      if (won.some(({ queued }) => queued.isSettled)) throw new CallerGaveUp();
      for (const { queued } of won) queued.isCommitting = true;
      return won;
    });
  } finally {
    for (const call of calls) call.isCommitting = false;
  }
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

/** Writes what still holds; the calls whose facts changed, or that another gate took, are left out. */
async function write(
  tx: Tx,
  prepared: readonly PreparedCall[],
  facts: GroupFacts,
  nowMs: number,
  { codec, clock, environment }: GroupCommitOptions,
): Promise<readonly PreparedCall[]> {
  const at = new Date(nowMs);
  const newSessions = toNewSessions(prepared, facts);
  if (newSessions.length > 0) await insertSessions(tx, newSessions, at);
  const valid = await whatStillHolds(tx, prepared);
  // A call that gave up waiting was told no: it is not written as allowed.
  const open = valid.filter(({ queued }) => !queued.isSettled);
  const won = await claim(tx, open, at);
  if (won.length === 0) return won;
  const { envelopes, anchors, capabilities } = toConsequences(won, {
    nowMs,
    environment,
    newEventId: () => newEventId(clock),
    anchorOf: (key) => facts.anchors.get(key),
  });
  const evidence = won.flatMap((one) => (one.evidence === null ? [] : [one.evidence]));
  await saveConsequences(tx, anchors, capabilities, evidence, at);
  await appendOutbox(tx, toOutboxRows(codec, envelopes));
  return won;
}

function toNewSessions(prepared: readonly PreparedCall[], facts: GroupFacts): SessionRow[] {
  const rows = new Map<string, SessionRow>();
  for (const { queued, sessionKey, work, correlationId } of prepared) {
    const { sessionId } = work.call;
    if (
      sessionKey === null ||
      sessionId === undefined ||
      queued.isSettled ||
      facts.sessions.has(sessionKey)
    ) {
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

/**
 * Decisions whose facts are still the same, held to the end of the transaction. Observations depend on nothing.
 * INVARIANT: a freeze between the decision's facts and its commit is seen
 * (test/integration/gate-group.test.ts "decides again when the tenant is frozen between facts and commit").
 */
async function whatStillHolds(tx: Tx, prepared: readonly PreparedCall[]): Promise<readonly PreparedCall[]> {
  const conditional = prepared.filter((one) => !one.isUnconditional);
  if (conditional.length === 0) return prepared;
  const held = await holdVersions(
    tx,
    unique(conditional.map(({ work }) => work.tenantId)),
    unique(conditional.map(({ sessionKey }) => sessionKey)),
  );
  return prepared.filter(
    (one) =>
      one.isUnconditional ||
      (held.tenants.get(one.work.tenantId) === one.tenantVersion &&
        held.sessions.get(one.sessionKey ?? "") === one.sessionVersion),
  );
}

/** The calls that nobody took before. */
async function claim(tx: Tx, open: readonly PreparedCall[], at: Date): Promise<readonly PreparedCall[]> {
  const decisions = open.flatMap(({ decisionRow }) => (decisionRow === null ? [] : [decisionRow]));
  const observed = open.flatMap(({ queued, decisionRow }): HookCallRow[] =>
    decisionRow === null && queued.callKey !== null
      ? [{ callKey: queued.callKey, tenantId: queued.work.tenantId }]
      : [],
  );
  const claimed = await claimCalls(tx, decisions, observed, at);
  return open.filter(({ queued, decisionRow }) =>
    decisionRow !== null
      ? claimed.decisionIds.has(decisionRow.decisionId)
      : queued.callKey === null || claimed.callKeys.has(queued.callKey),
  );
}

function toOutcome({ decision }: PreparedCall): HookOutcome {
  return decision === null
    ? { kind: "recorded", repeated: false }
    : { kind: "answered", answer: decision.answer };
}

function unique(values: readonly (string | null)[]): string[] {
  return [...new Set(values.filter((one) => one !== null))].sort();
}
