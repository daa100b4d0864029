import type { FaultCode } from "../../schemas/faults.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Clock } from "../platform/clock.ts";
import { newEventId, newUuidV7 } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import { maskJson, maskText } from "../platform/mask.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import type { EvidenceRow, TenantKey, TenantKeys } from "../platform/vault-seal.ts";
import { insertEvidenceStatement, sealInline, sealPayload, sealWith } from "../platform/vault-seal.ts";
import { toAnswer } from "./answer.ts";
import { toAnchorKey, toCallKey, toCorrelationId, toSessionKey } from "./call-keys.ts";
import type { Facts, Stage } from "./decide.ts";
import { decide, defaultStages, proposedDigest } from "./decide.ts";
import type { GroupFacts } from "./facts.ts";
import { loadFacts } from "./facts.ts";
import { createGroupQueue } from "./group-queue.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";
import type { RecordableWork } from "./record.ts";
import { toConsequences } from "./record.ts";
import type { Bundle } from "./rules.ts";
import type { DecisionRow, HookCallRow, SessionRow } from "./store.ts";
import { claimCalls, holdVersions, insertSessions, saveConsequences } from "./store.ts";

export interface CommitterOptions {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly keys: TenantKeys;
  readonly bundle: Bundle;
  readonly clock: Clock;
  readonly environment: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly stages?: readonly Stage[];
  readonly maxGroup?: number;
  readonly maxInFlight?: number;
  readonly maxWaiting?: number;
}

/** Decides and records in one step: what it answers is committed. */
export interface Committer {
  /** Never rejects. `budgetMs` is the whole time until there is an outcome; past it, GATE_TIMEOUT. */
  submit(work: HookWork, budgetMs: number): Promise<HookOutcome>;
  readonly waiting: number;
  close(): Promise<void>;
}

/** Most calls of one commit: beyond it a commit takes longer than the calls gain by sharing it. */
const defaultMaxGroup = 64;
/** While one group is on the wire, the next one is decided. */
const defaultMaxInFlight = 2;
/** About a second of work; what comes on top would only time out. */
const defaultMaxWaiting = 2_048;
/** Times that a call is decided on facts that changed meanwhile, before it is denied. */
const maxAttempts = 3;
/** Larger payloads go to the vault by themselves, so that they do not weigh on the group's commit. */
const inlineMaxBytes = 65_536;

interface Stored {
  readonly ref: string;
  readonly digest: string;
  /** Null: it is in the vault already. */
  readonly row: EvidenceRow | null;
}

/** A call in the queue, with what does not change from one attempt to the next. */
interface Item {
  readonly work: HookWork;
  readonly sessionKey: string | null;
  readonly callKey: string | null;
  readonly anchorKeys: readonly string[];
  readonly loneCorrelationId: string;
  readonly answered: (outcome: HookOutcome) => void;
  payload: Stored | null;
  requestRef: string | null;
  attempts: number;
  isSettled: boolean;
}

/** A call with its decision, ready to be written. */
interface Prepared extends RecordableWork {
  readonly item: Item;
  readonly sessionFacts: Facts["session"];
  readonly tenantVersion: number;
  /** Decided without regard to what changes meanwhile: a deny that holds either way. */
  readonly isUnconditional: boolean;
  readonly evidence: EvidenceRow | null;
  readonly decisionRow: DecisionRow | null;
}

export function createCommitter(options: CommitterOptions): Committer {
  const { database, codec, keys, bundle, clock, environment, log, metrics } = options;
  const stages = options.stages ?? defaultStages;
  const groupSizes = metrics.histogram(
    "fabric_gate_group_size",
    "calls that shared a commit",
    [],
    [1, 2, 4, 8, 16, 32, 64],
  );
  const retries = metrics.counter("fabric_gate_retries_total", "calls decided again, by cause", ["cause"]);
  const late = metrics.counter(
    "fabric_gate_late_total",
    "decisions committed after their caller was told no",
  );
  const queue = createGroupQueue<Item>({
    maxGroup: options.maxGroup ?? defaultMaxGroup,
    maxInFlight: options.maxInFlight ?? defaultMaxInFlight,
    maxWaiting: options.maxWaiting ?? defaultMaxWaiting,
    run: (group) => runGroup(group),
  });
  metrics.gauge("fabric_gate_queue_depth", "calls that wait for a commit", [], (set) => set(queue.waiting));

  function submit(work: HookWork, budgetMs: number): Promise<HookOutcome> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => item.answered({ kind: "failed", code: "GATE_TIMEOUT" }), budgetMs);
      const item: Item = toItem(work, (outcome) => {
        if (item.isSettled) return;
        item.isSettled = true;
        clearTimeout(timer);
        resolve(outcome);
      });
      putAwayLarge(item).then(
        (isServed) => {
          if (!isServed) item.answered({ kind: "tenant_unknown" });
          else if (!queue.push(item)) item.answered({ kind: "failed", code: "OVERLOADED" });
        },
        (error: unknown) => failAll([item], error),
      );
    });
  }

  function toItem(work: HookWork, answered: Item["answered"]): Item {
    const { tenantId, runtime, call, request } = work;
    const sessionKey =
      call.sessionId === undefined ? null : toSessionKey(tenantId, runtime.kind, call.sessionId);
    const digest = request === null ? null : proposedDigest(request, bundle);
    const anchors = work.observations.flatMap(({ causes }) => causes);
    return {
      work,
      sessionKey,
      callKey: sessionKey === null ? null : toCallKey(sessionKey, call, digest),
      anchorKeys: sessionKey === null ? [] : anchors.map((anchor) => toAnchorKey(sessionKey, anchor)),
      loneCorrelationId: `cor_${newUuidV7(clock.nowMs())}`,
      answered,
      payload: null,
      requestRef: null,
      attempts: 0,
      isSettled: false,
    };
  }

  /** Large payloads are sealed and stored before they queue. False: the tenant is not served here. */
  async function putAwayLarge(item: Item): Promise<boolean> {
    const { tenantId, raw, dataClass, request } = item.work;
    if (raw.length <= inlineMaxBytes) return true;
    const found = await database.query("SELECT 1 FROM access.tenants WHERE tenant_id = $1", [tenantId]);
    if (found.rowCount === 0) return false;
    const payload = await sealPayload(keys, { tenantId, bytes: raw, dataClass });
    const rows = [payload.row];
    if (request !== null) {
      const bytes = Buffer.from(JSON.stringify(request), "utf8");
      const exact = await sealPayload(keys, { tenantId, bytes, dataClass: "confidential" });
      rows.push(exact.row);
      item.requestRef = exact.ref;
    }
    await database.query(insertEvidenceStatement(rows));
    item.payload = { ref: payload.ref, digest: payload.digest, row: null };
    return true;
  }

  async function runGroup(group: readonly Item[]): Promise<void> {
    const open = group.filter((item) => !item.isSettled);
    if (open.length === 0) return;
    try {
      const again = await decideAndCommit(open);
      if (again.length > 0) queue.putBack(again);
    } catch (error) {
      await recover(open, error);
    }
  }

  /** What a failed commit means: the database is away, somebody else won, or one call spoils it for all. */
  async function recover(group: readonly Item[], error: unknown): Promise<void> {
    const code = error instanceof Fault ? error.code : "INTERNAL";
    if (code === "DATABASE_CONFLICT") {
      retries.add({ cause: "transaction" }, group.length);
      for (const item of group) item.attempts += 1;
      const tired = group.filter((item) => item.attempts > maxAttempts);
      for (const item of tired) item.answered({ kind: "failed", code: "DATABASE_CONFLICT" });
      queue.putBack(group.filter((item) => item.attempts <= maxAttempts));
      return;
    }
    const isShared = error instanceof Fault && (error.kind === "transient" || code === "KEY_UNAVAILABLE");
    if (group.length === 1 || isShared) {
      failAll(group, error);
      return;
    }
    // INVARIANT: one call that cannot be recorded does not fail its neighbours
    // (test/integration/gate-group.test.ts "fails only the call that cannot be recorded").
    retries.add({ cause: "split" }, group.length);
    const middle = Math.ceil(group.length / 2);
    await runGroup(group.slice(0, middle));
    await runGroup(group.slice(middle));
  }

  function failAll(group: readonly Item[], error: unknown): void {
    const code: FaultCode = error instanceof Fault ? error.code : "INTERNAL";
    log.error(
      { code, calls: group.length, reason: maskText(causesOf(error)) },
      "calls could not be recorded",
    );
    for (const item of group) item.answered({ kind: "failed", code });
  }

  /** One round: facts, rulings, one transaction. Returns the calls that have to be decided again. */
  async function decideAndCommit(group: readonly Item[]): Promise<Item[]> {
    const facts = await loadFacts(database, {
      tenantIds: unique(group.map(({ work }) => work.tenantId)),
      sessionKeys: unique(group.map(({ sessionKey }) => sessionKey)),
      callKeys: unique(group.map(({ callKey }) => callKey)),
      anchorKeys: unique(group.flatMap(({ anchorKeys }) => anchorKeys)),
    });
    const fresh: Item[] = [];
    const followers: Item[] = [];
    const leaders = new Set<string>();
    for (const item of group) {
      if (answerAtOnce(item, facts)) continue;
      if (item.callKey !== null && leaders.has(item.callKey)) {
        followers.push(item);
        continue;
      }
      if (item.callKey !== null) leaders.add(item.callKey);
      fresh.push(item);
    }
    if (fresh.length === 0) return [];
    const tenantKeys = await openKeys(fresh);
    const nowMs = clock.nowMs();
    const prepared = fresh.map((item) => prepare(item, facts, tenantKeys, nowMs));
    const committed = await database.transaction((tx) => commit(tx, prepared, facts, nowMs));
    groupSizes.observe(committed.length);
    notifyOutbox(database);
    for (const one of committed) {
      // The budget ended while the commit was on its way: the caller was told no, and the right lapses unused.
      if (one.item.isSettled) late.add();
      one.item.answered(toOutcome(one));
    }
    const done = new Set(committed.map(({ item }) => item));
    const lost = fresh.filter((item) => !done.has(item) && !item.isSettled);
    for (const item of lost) item.attempts += 1;
    if (lost.length > 0) retries.add({ cause: "facts" }, lost.length);
    // A follower finds its leader's answer among the facts of the next round.
    return [...lost, ...followers.filter((item) => !item.isSettled)];
  }

  /** What needs no decision: an unknown tenant, and a call that was decided or recorded before. */
  function answerAtOnce(item: Item, facts: GroupFacts): boolean {
    if (!facts.tenants.has(item.work.tenantId)) {
      item.answered({ kind: "tenant_unknown" });
      return true;
    }
    if (item.callKey === null) return false;
    const stored = facts.answers.get(item.callKey);
    if (stored !== undefined) {
      item.answered({ kind: "answered", answer: { ...stored, repeated: true } });
      return true;
    }
    if (facts.recorded.has(item.callKey)) {
      item.answered({ kind: "recorded", repeated: true });
      return true;
    }
    return false;
  }

  async function openKeys(items: readonly Item[]): Promise<ReadonlyMap<string, TenantKey>> {
    const opened = new Map<string, TenantKey>();
    for (const tenantId of unique(items.map(({ work }) => work.tenantId))) {
      opened.set(tenantId, await keys.current(tenantId));
    }
    return opened;
  }

  function prepare(
    item: Item,
    facts: GroupFacts,
    tenantKeys: ReadonlyMap<string, TenantKey>,
    nowMs: number,
  ): Prepared {
    const { work, sessionKey } = item;
    const key = tenantKeys.get(work.tenantId);
    const tenant = facts.tenants.get(work.tenantId);
    if (key === undefined || tenant === undefined) throw new Fault("INTERNAL", "a call lost its tenant");
    item.payload ??= sealWith(key, { tenantId: work.tenantId, bytes: work.raw, dataClass: work.dataClass });
    const session = sessionKey === null ? undefined : facts.sessions.get(sessionKey);
    const sessionFacts = { version: session?.version ?? 0, labels: session?.labels ?? [] };
    const correlationId =
      session !== undefined
        ? `cor_${session.correlation_id}`
        : sessionKey === null
          ? item.loneCorrelationId
          : toCorrelationId(sessionKey);
    const base = {
      item,
      work,
      sessionKey,
      correlationId,
      payloadRef: item.payload.ref,
      payloadDigest: item.payload.digest,
      firstEventId: newEventId(clock),
      sessionFacts,
      tenantVersion: tenant.version,
      evidence: item.payload.row,
    };
    if (work.request === null || sessionKey === null) {
      return { ...base, decision: null, decisionRow: null, isUnconditional: true };
    }
    const known: Facts = { tenant, session: sessionFacts };
    const isUnconditional = item.attempts >= maxAttempts;
    const ruling = decide(work.request, known, bundle, isUnconditional ? [...stages, conflictStage] : stages);
    const answer = toAnswer(ruling, work.request, {
      decisionId: `dec_${newUuidV7(nowMs)}`,
      capabilityId: `cap_${newUuidV7(nowMs)}`,
      correlationId,
      nowMs,
      policyRevision: bundle.revision,
    });
    const decisionRow: DecisionRow = {
      decisionId: answer.decision_id,
      tenantId: work.tenantId,
      sessionKey,
      callKey: item.callKey,
      requestedEventId: base.firstEventId,
      runtime: work.runtime.kind,
      phase: work.request.phase,
      tool: work.request.tool,
      effectClass: ruling.classified.effect,
      answer,
      ...toStoredRequest(item, work.request, key, answer.decision_id),
      payloadRef: item.payload.ref,
      facts: known,
    };
    return { ...base, decision: { ruling, answer }, decisionRow, isUnconditional };
  }

  /** Writes what still holds; the calls whose facts changed, or that another gate took, are left out. */
  async function commit(
    tx: Tx,
    prepared: readonly Prepared[],
    facts: GroupFacts,
    nowMs: number,
  ): Promise<readonly Prepared[]> {
    const at = new Date(nowMs);
    const asked = prepared.filter(({ item }) => !item.isSettled);
    const newSessions = toNewSessions(asked, facts);
    if (newSessions.length > 0) await insertSessions(tx, newSessions, at);
    const valid = await whatStillHolds(tx, asked);
    // A call that gave up waiting was told no: it is not written as allowed.
    const open = valid.filter(({ item }) => !item.isSettled);
    const rows = open.flatMap(({ decisionRow }) => (decisionRow === null ? [] : [decisionRow]));
    const calls = open.flatMap(({ item, decisionRow }): HookCallRow[] =>
      decisionRow === null && item.callKey !== null
        ? [{ callKey: item.callKey, tenantId: item.work.tenantId }]
        : [],
    );
    const claimed = await claimCalls(tx, rows, calls, at);
    const won = open.filter(({ item, decisionRow }) =>
      decisionRow !== null
        ? claimed.decisionIds.has(decisionRow.decisionId)
        : item.callKey === null || claimed.callKeys.has(item.callKey),
    );
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

  return {
    submit,
    get waiting() {
      return queue.waiting;
    },
    close: () => queue.drained(),
  };
}

/** Denies what could not be decided on facts that stay. */
const conflictStage: Stage = {
  name: "conflict",
  judge: () => ({
    verdicts: [
      {
        rule: "gate.conflict",
        decision: "deny",
        reason: "CONFLICT",
        message: "what the decision is based on keeps changing; try again",
        priority: 10_000,
        isAbsolute: true,
      },
    ],
  }),
};

/** Exact where masking changes nothing; else masked, with the exact form sealed beside it or put away in the vault. */
function toStoredRequest(
  item: Item,
  request: NonNullable<HookWork["request"]>,
  key: TenantKey,
  decisionId: string,
): Pick<DecisionRow, "request" | "requestSealed" | "requestRef"> {
  if (item.requestRef !== null) {
    return { request: { ...request, input: {} }, requestSealed: null, requestRef: item.requestRef };
  }
  const masked = maskJson(request);
  const exact = JSON.stringify(request);
  const isExact = JSON.stringify(masked) === exact && !/\\u0000|\p{Surrogate}/u.test(exact);
  const place = `gate.decisions/request_sealed/${decisionId}`;
  return {
    request: masked,
    requestSealed: isExact ? null : sealInline(key, place, Buffer.from(exact, "utf8")),
    requestRef: null,
  };
}

function toNewSessions(prepared: readonly Prepared[], facts: GroupFacts): SessionRow[] {
  const rows = new Map<string, SessionRow>();
  for (const { sessionKey, work, correlationId } of prepared) {
    if (sessionKey === null || work.call.sessionId === undefined || facts.sessions.has(sessionKey)) continue;
    rows.set(sessionKey, {
      sessionKey,
      tenantId: work.tenantId,
      runtime: work.runtime.kind,
      sessionId: work.call.sessionId,
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
async function whatStillHolds(tx: Tx, prepared: readonly Prepared[]): Promise<readonly Prepared[]> {
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
        held.sessions.get(one.sessionKey ?? "") === one.sessionFacts.version),
  );
}

function toOutcome({ decision }: Prepared): HookOutcome {
  return decision === null
    ? { kind: "recorded", repeated: false }
    : { kind: "answered", answer: decision.answer };
}

function unique(values: readonly (string | null)[]): string[] {
  return [...new Set(values.filter((one) => one !== null))].sort();
}

/** The messages of an error and its causes. */
function causesOf(error: unknown): string {
  const messages: string[] = [];
  for (let one: unknown = error; one instanceof Error && messages.length < 4; one = one.cause)
    messages.push(one.message);
  return messages.join(": caused by ");
}
