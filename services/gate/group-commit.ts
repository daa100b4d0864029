import type { Draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { Clock } from "../platform/clock.ts";
import { newEventId, toUuid } from "../platform/ids.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database } from "../platform/postgres.ts";
import type { TenantKey, TenantKeys } from "../platform/vault-seal.ts";
import { openInline } from "../platform/vault-seal.ts";
import { toRepeatedAnswer } from "./answer.ts";
import { inputPlace, toExactInput } from "./call-change.ts";
import { isHeld, isRevoked, toPlanKey } from "./call-facts.ts";
import { toSessionKey } from "./call-keys.ts";
import type { CommitSteps } from "./commit-steps.ts";
import { wantedCounters } from "./counters.ts";
import type { GroupFacts, StoredAnswer, WantedCall, WantedPlan } from "./facts.ts";
import type { loadFacts } from "./facts.ts";
import type { ChangingCall } from "./group-change.ts";
import { toChangeJson, toGroupChange } from "./group-change.ts";
import { createGroupLedger } from "./group-ledger.ts";
import type { HoldWatch, HoldsOf } from "./hold-watch.ts";
import type { HookOutcome } from "./hook-work.ts";
import type { PreparedCall } from "./prepare-call.ts";
import { prepareCall } from "./prepare-call.ts";
import type { QueuedCall } from "./queued-call.ts";
import { isStillOpen } from "./queued-call.ts";
import { toConsequences } from "./record.ts";
import type { Decide } from "./stages/decide.ts";
import { wantedFacts } from "./stages/facts-needed.ts";
import type { CommitConflict, GroupRows, HookCallRow, SessionRow } from "./store.ts";
import { toCommitRefusal } from "./store.ts";

export interface GroupCommitOptions {
  readonly database: Database;
  readonly steps: CommitSteps;
  readonly codec: EventEncoder;
  readonly keys: TenantKeys;
  readonly decide: Decide;
  readonly clock: Clock;
  readonly environment: string;
  /** What the breaker and people hold back. */
  readonly holds: Pick<HoldWatch, "at">;
  /** Times that a call is decided on facts that changed meanwhile, before it is denied. */
  readonly maxAttempts: number;
  /** Told what was seen of tenants. */
  readonly onTenants: (tenants: GroupFacts["tenants"]) => void;
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
  /** What results said against their decisions. */
  readonly remarks: readonly Draft[];
}

/**
 * One round for a group: its facts in one query, the rulings, one statement that writes it. Every call that was written is
 * answered, after the commit. Throws when nothing was written.
 */
export async function commitGroup(
  calls: readonly QueuedCall[],
  options: GroupCommitOptions,
): Promise<GroupResult> {
  const { database, steps } = options;
  const facts = await steps.read(toWanted(calls, options.clock.nowMs()));
  const holdsOf = await options.holds.at(facts.tenants);
  options.onTenants(facts.tenants);
  const unanswered: QueuedCall[] = [];
  for (const call of calls) {
    if (!call.isSettled && !(await answerAtOnce(call, { facts, holdsOf }, options.keys)))
      unanswered.push(call);
  }
  const { leaders, followers } = toLeaders(unanswered);
  if (leaders.length === 0) return { committed: 0, late: [], lost: [], followers, remarks: [] };
  const context = { facts, holdsOf, tenantKeys: await openKeys(options.keys, leaders), ...options };
  const committed = await commitWhatHolds(leaders, context);
  if (committed.length > 0) notifyOutbox(database);
  const late = committed
    .filter(({ queued }) => queued.isSettled)
    .map(({ decision }) => ({ capabilityId: decision?.answer.capability?.id ?? null }));
  if (committed.length > 0) await steps.answer(committed);
  const written = new Set(committed.map(({ queued }) => queued));
  return {
    committed: committed.length,
    late,
    lost: leaders.filter((call) => !written.has(call) && !call.isSettled),
    followers,
    remarks: committed.flatMap(({ remark }) => (remark === null ? [] : [remark])),
  };
}

/** What is known of a group's calls. */
interface Known {
  readonly facts: GroupFacts;
  readonly holdsOf: HoldsOf;
}

interface CommitContext extends GroupCommitOptions, Known {
  readonly tenantKeys: ReadonlyMap<string, TenantKey>;
}

/** What the calls of a group have to know. Windows are those of now; at their edge the commit finds what was missed. */
function toWanted(calls: readonly QueuedCall[], nowMs: number): Parameters<typeof loadFacts>[1] {
  const gated = calls.filter(({ work }) => work.request !== null);
  const plans = new Map<string, WantedPlan>();
  for (const call of gated) {
    const key = toPlanKey(call);
    const { sessionKey, intentDigest, work } = call;
    if (key === null || sessionKey === null || intentDigest === null) continue;
    plans.set(key, {
      tenantId: work.tenantId,
      sessionKey,
      agentId: work.call.agentId ?? "",
      intentDigest,
    });
  }
  return {
    tenantIds: unique(calls.map(({ work }) => work.tenantId)),
    sessionKeys: unique(calls.flatMap(({ sessionKey, parentKey }) => [sessionKey, parentKey])),
    decisionKeys: unique(gated.map(({ callKey }) => callKey)),
    hookKeys: unique(calls.map(({ work, callKey }) => (work.request === null ? callKey : null))),
    anchorKeys: unique(calls.flatMap(({ anchorKeys }) => anchorKeys)),
    plans: [...plans.values()],
    counterKeys: unique(
      gated.flatMap(({ work, policy }) =>
        work.request === null ? [] : wantedCounters(work.request, work.tenantId, policy, nowMs),
      ),
    ),
    results: calls.flatMap(toWantedCall),
    datedNames: unique(gated.flatMap(({ policy, work }) => wantedFacts(policy, work.request))),
  };
}

/** PostgreSQL takes no NUL in a text; a call of such a name was denied. */
function toWantedCall({ sessionKey, work }: QueuedCall): WantedCall[] {
  const toolCallId = work.reported?.tool_call_id;
  if (sessionKey === null || toolCallId === undefined || toolCallId.includes("\0")) return [];
  return [{ sessionKey, toolCallId }];
}

/** Decides the calls one after the other, each on what those before it change. */
function prepareAll(calls: readonly QueuedCall[], context: CommitContext): PreparedCall[] {
  const ledger = createGroupLedger();
  return calls.map((call) => prepareCall(call, { ledger, ...context }));
}

/**
 * Decides the group and writes it. The server writes nothing of it when one call does not hold; then the others are sent
 * again, and the calls that did not hold are left to the next round. From sending to the server's answer nobody tells a
 * caller no: whether its call is decided is not known.
 * INVARIANT: a caller that was told no finds no allow in the trail, as long as the database answers a commit within
 * `commitGraceMs` (test/integration/gate-group.test.ts "does not record an allow for a caller that gave up").
 */
function commitWhatHolds(
  leaders: readonly QueuedCall[],
  context: CommitContext,
): Promise<readonly PreparedCall[]> {
  let left: readonly PreparedCall[] = prepareAll(leaders, context);
  /** Leaves calls out. Others may have been decided on what those change: then they are decided once more. */
  function keep(test: (one: PreparedCall) => boolean): void {
    const kept = left.filter(test);
    const isSeen = left.some((one) => !kept.includes(one) && one.isSeenByOthers);
    left =
      isSeen && kept.length > 0
        ? prepareAll(
            kept.map(({ queued }) => queued),
            context,
          )
        : kept;
  }
  return context.database.connected(async (tx) => {
    for (;;) {
      const nowMs = performance.now();
      keep(({ queued }) => isStillOpen(queued, nowMs));
      if (left.length === 0) return [];
      const sent = left;
      const rows = toRows(sent, context);
      for (const { queued } of sent) queued.isCommitting = true;
      try {
        await context.steps.write(tx, rows, sent);
        return sent;
      } catch (error) {
        const refusal = toCommitRefusal(error);
        if (refusal === null) throw error;
        if (refusal === "too_late") {
          // The time of the earliest is up, as the server measured it; so each round has less to do than the one before.
          const earliestMs = Math.min(...sent.map(({ queued }) => queued.deadlineMs));
          keep(({ queued }) => isStillOpen(queued, earliestMs));
        } else {
          keep((one) => holds(one, refusal));
          // Nobody to blame would mean the same statement for ever.
          if (left.length === sent.length) throw new Fault("DATABASE_CONFLICT", "a group does not hold");
        }
      } finally {
        for (const { queued } of sent) queued.isCommitting = false;
      }
    }
  });
}

/**
 * Decisions whose facts are still the same, of calls that nobody took. Observations depend on nothing.
 * INVARIANT: a freeze between the decision's facts and its commit is seen
 * (test/integration/gate-group.test.ts "decides again when the tenant is frozen between facts and commit").
 */
function holds(one: PreparedCall, refusal: CommitConflict): boolean {
  const { isUnconditional, work, heldSessions, decisionRow, queued, change } = one;
  if (!isUnconditional) {
    if (refusal.tenants.has(work.tenantId)) return false;
    for (const key of heldSessions.keys()) if (refusal.sessions.has(key)) return false;
  }
  if (change !== null) {
    // Also those that only read it: what they read was not so.
    if (!isUnconditional && change.counterKeys.some((key) => refusal.counters.has(key))) return false;
    const approvals = [
      change.requested?.approvalId,
      change.consumed?.approvalId,
      change.voided?.approvalId,
      change.awaited,
    ];
    if (approvals.some((id) => id != null && refusal.approvals.has(toUuid(id)))) return false;
    if (change.supersedes !== null && refusal.superseded.has(toUuid(change.supersedes))) return false;
  }
  return !refusal.calls.has(decisionRow === null ? (queued.callKey ?? "") : toUuid(decisionRow.decisionId));
}

/** Everything that the calls write, encoded; last of all the time that is left for it. */
function toRows(
  prepared: readonly PreparedCall[],
  { facts, codec, clock, environment, eventMaxBytes }: CommitContext,
): GroupRows {
  const nowMs = facts.serverMs;
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
  const sessions = toNewSessions(prepared, facts);
  const heldTenants = new Map(conditional.map((one) => [one.work.tenantId, one.tenantVersion]));
  const heldSessions = new Map(conditional.flatMap((one) => [...one.heldSessions]));
  // Results that were told too often that their session had changed: their labels are set all the same.
  const changedSessions = new Map<string, number | null>([
    ...prepared.flatMap(({ change, heldSessions: held }) =>
      change === null ? [] : [...held.keys()].map((key) => [key, null] as const),
    ),
    ...heldSessions,
  ]);
  const { parts, holdsSessions } = toGroupChange(
    prepared.flatMap(toChangingCall),
    { tenants: heldTenants, sessions: changedSessions, newSessions: sessions },
    facts,
  );
  const earliestMs = Math.min(...prepared.map(({ queued }) => queued.deadlineMs));
  const budgetMs = Math.max(0, earliestMs - performance.now());
  return {
    nowMs,
    budgetMs,
    untilServerMs: earliestMs + facts.toServerMs,
    policyRevision: prepared[0]?.queued.policy.revision ?? "",
    sessions,
    heldTenants,
    heldSessions: holdsSessions ? new Map() : heldSessions,
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
    more: parts === null ? null : toChangeJson(parts, nowMs, budgetMs),
  };
}

function toChangingCall({ work, queued, decisionRow, change }: PreparedCall): ChangingCall[] {
  if (change === null) return [];
  const decisionId = decisionRow?.decisionId ?? null;
  return [{ tenantId: work.tenantId, decisionId, callKey: queued.callKey, change }];
}

/** What needs no decision: an unknown tenant, and a call that was decided for good or recorded before. */
async function answerAtOnce(call: QueuedCall, known: Known, keys: TenantKeys): Promise<boolean> {
  const outcome = await knownOutcome(call, known, keys);
  if (outcome !== null) call.answer(outcome);
  return outcome !== null;
}

async function knownOutcome(call: QueuedCall, known: Known, keys: TenantKeys): Promise<HookOutcome | null> {
  const { work, callKey } = call;
  const { facts } = known;
  const tenant = facts.tenants.get(work.tenantId);
  if (tenant === undefined) return { kind: "tenant_unknown" };
  if (callKey === null) return null;
  const stored = facts.answers.get(callKey);
  if (stored === undefined) {
    return facts.recorded.has(callKey) ? { kind: "recorded", repeated: true } : null;
  }
  // What was told stays told, whatever policy is in force when it is recorded.
  const wasAllowed = stored.answer.decision === "allow" || stored.answer.decision === "modify";
  if (!(work.told !== undefined && wasAllowed) && !isFinal(call, stored, known)) return null;
  const answer = await toExactAnswer(stored, work.tenantId, keys);
  return { kind: "answered", answer: toRepeatedAnswer(answer, tenant.state) };
}

/**
 * Whether a stored answer is the answer still. A deferral never is, an approval's ticket as long as it is open, an allow as
 * long as its right is in force, nobody revoked the plan, and the policy is the one that allowed it.
 * INVARIANT: test/integration/gate-dedupe.test.ts "is decided again when another policy is in force".
 */
function isFinal(
  call: QueuedCall,
  { answer, isInForce, isUsed }: StoredAnswer,
  { facts, holdsOf }: Known,
): boolean {
  switch (answer.decision) {
    case "defer":
      return false;
    case "require_approval":
      return isInForce;
    case "deny":
      // That it took too long says nothing of the call, and neither does a hold that is over.
      if (endsWithHold.has(answer.reason_code)) {
        return facts.tenants.get(call.work.tenantId)?.state !== "active" || isHeld(call, facts, holdsOf);
      }
      return answer.reason_code !== "GATE_TIMEOUT";
    case "allow":
    case "modify":
      return (
        isInForce &&
        !isHeld(call, facts, holdsOf) &&
        // What runs by its hook alone asks for no right: the answer itself is what lets it pass. A right that was used is
        // the end of the call, whatever the policy of now says.
        (isUsed || answer.policy_revision === call.policy.revision) &&
        !isRevoked(call, facts, call.intentDigest) &&
        !isRevoked(call, facts, answer.plan_digest)
      );
  }
}

/** Refusals that stand as long as a hold or a freeze does. */
const endsWithHold: ReadonlySet<string> = new Set(["READ_ONLY_BREAKER", "INCIDENT_FROZEN", "TENANT_FROZEN"]);

async function toExactAnswer(
  { answer, sealed, decisionId }: StoredAnswer,
  tenantId: string,
  keys: TenantKeys,
): Promise<GateAnswer> {
  if (sealed === null) return answer;
  const bytes = await openInline(keys, tenantId, inputPlace(decisionId), sealed);
  return { ...answer, modified_input: toExactInput(bytes) };
}

/** The first of each call, under one policy; and the others. */
function toLeaders(calls: readonly QueuedCall[]): { leaders: QueuedCall[]; followers: QueuedCall[] } {
  const seen = new Set<string>();
  const leaders: QueuedCall[] = [];
  const followers: QueuedCall[] = [];
  for (const call of calls) {
    // Just after an activation: a commit names one revision.
    const isOther = call.policy !== calls[0]?.policy;
    if (isOther || (call.callKey !== null && seen.has(call.callKey))) {
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
  function add(sessionKey: string, sessionId: string, one: PreparedCall): void {
    if (facts.sessions.has(sessionKey) || rows.has(sessionKey)) return;
    rows.set(sessionKey, {
      sessionKey,
      tenantId: one.work.tenantId,
      runtime: one.work.runtime.kind,
      sessionId,
      correlationId: one.correlationId,
    });
  }
  for (const one of prepared) {
    const { sessionId } = one.work.call;
    if (one.sessionKey === null || sessionId === undefined) continue;
    add(one.sessionKey, sessionId, one);
    const parentId = (one.work.request ?? one.work.reported)?.parent_session_id;
    if (parentId === undefined) continue;
    // A parent that nobody has seen yet, so that it can be labelled.
    add(toSessionKey(one.work.tenantId, one.work.runtime.kind, parentId), parentId, one);
  }
  return [...rows.values()];
}

function unique(values: readonly (string | null)[]): string[] {
  return [...new Set(values.filter((one) => one !== null))].sort();
}
