import type { Observation } from "../../schemas/adapter.ts";
import type { Draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GateAnswer, GateRequest, JsonObject } from "../../schemas/gate.ts";
import type { Clock } from "../platform/clock.ts";
import { newEventId, newUuidV7 } from "../platform/ids.ts";
import { maskJson } from "../platform/mask.ts";
import type { EvidenceRow, TenantKey } from "../platform/vault-seal.ts";
import { sealInline, sealWith } from "../platform/vault-seal.ts";
import { capabilityTtlMs, toAnswer } from "./answer.ts";
import { toCorrelationId } from "./call-keys.ts";
import { findHoldsOfCall, isRevoked, toAutomationDepth, toKnownCall } from "./call-facts.ts";
import type { CallChange } from "./call-change.ts";
import { toCallChange, toLedgerEntry, toResultChange } from "./call-change.ts";
import type { Classified } from "./classified.ts";
import type { GroupFacts, TenantFacts } from "./facts.ts";
import { resultKey } from "./facts.ts";
import type { HoldsOf } from "./hold-watch.ts";
import type { GroupLedger, KnownFacts } from "./group-ledger.ts";
import type { HookWork } from "./hook-work.ts";
import type { Verdict } from "./policy/policy.ts";
import type { QueuedCall } from "./queued-call.ts";
import type { RecordableWork } from "./record.ts";
import { toLocalRuling } from "./local-profile.ts";
import { checkResult, digestOf } from "./result-check.ts";
import { labelsOfResult } from "./result-labels.ts";
import type { Ruling } from "./ruling.ts";
import { classifySafely } from "./stages/classify-stage.ts";
import type { Decide } from "./stages/decide.ts";
import { emptyFacts, toUnrecordedRuling } from "./unavailable.ts";
import type { DecisionRow } from "./store.ts";
import { holdsUnstorable, toJsonColumn } from "./store.ts";

/** A call with its decision, ready to be written. */
export interface PreparedCall extends RecordableWork {
  readonly queued: QueuedCall;
  /** Versions that the decision read. */
  readonly tenantVersion: number;
  readonly heldSessions: ReadonlyMap<string, number>;
  /** It holds whatever changes meanwhile: an observation, or the deny after too many changes. */
  readonly isUnconditional: boolean;
  readonly evidence: EvidenceRow | null;
  readonly decisionRow: DecisionRow | null;
  /** What it changes beside its decision; null: nothing is decided. */
  readonly change: CallChange | null;
  /** Calls after it in the group were decided on what it changes. */
  readonly isSeenByOthers: boolean;
}

export interface PrepareContext {
  readonly decide: Decide;
  readonly environment: string;
  readonly clock: Clock;
  readonly facts: GroupFacts;
  readonly holdsOf: HoldsOf;
  /** What the calls before it in the group change. */
  readonly ledger: GroupLedger;
  readonly tenantKeys: ReadonlyMap<string, TenantKey>;
  /** From this attempt on a call is denied instead of decided again. */
  readonly maxAttempts: number;
}

/** Denies what could not be decided on facts that stay. */
const conflict: Verdict = {
  rule: "gate.conflict",
  stage: "capability",
  decision: "deny",
  reason: "CONFLICT",
  message: "what the decision is based on keeps changing; try again",
  priority: 10_000,
  isAbsolute: true,
};

/** Denies what has more sessions above it than are looked at: one of the others may be held. */
const lineCut: Verdict = {
  rule: "gate.line-too-long",
  stage: "capability",
  decision: "deny",
  reason: "RULE_FAILED",
  message: "too many sessions stand above this one; start the work from one further up",
  priority: 9_000,
  isAbsolute: true,
};

/** Denies what could be recorded only by halves. */
const tooLarge: Verdict = {
  rule: "gate.event-too-large",
  stage: "capability",
  decision: "deny",
  reason: "INPUT_UNREADABLE",
  message: "the call names more than one event can carry; split it into several calls",
  priority: 9_000,
  isAbsolute: true,
};

/** The intent without what the input says: the payload is in the vault, whole. */
function withoutDetails(work: HookWork): HookWork {
  const observations = work.observations.map((one): Observation => {
    switch (one.draft.type) {
      case "agent.tool.requested": {
        const summary = { ...one.draft.redacted_summary, ...noDetails, paths: [], working_directory: null };
        return { ...one, draft: { ...one.draft, redacted_summary: summary } };
      }
      case "agent.permission.requested":
        return {
          ...one,
          draft: { ...one.draft, redacted_summary: { ...one.draft.redacted_summary, ...noDetails } },
        };
      default:
        return one;
    }
  });
  return { ...work, observations };
}
const noDetails = { input_preview: "", tool_alias: null };

/** Decides a call on the facts of its group and on what earlier calls of it change, and seals its payload. */
export function prepareCall(queued: QueuedCall, context: PrepareContext): PreparedCall {
  const { sessionKey, policy } = queued;
  const work = queued.isTooLarge ? withoutDetails(queued.work) : queued.work;
  const { facts, clock } = context;
  const key = context.tenantKeys.get(work.tenantId);
  const tenant = facts.tenants.get(work.tenantId);
  if (key === undefined || tenant === undefined) throw new Fault("INTERNAL", "a call lost its tenant");
  queued.payload ??= sealWith(key, { tenantId: work.tenantId, bytes: work.raw, dataClass: work.dataClass });
  const base = {
    queued,
    work,
    sessionKey,
    payloadRef: queued.payload.ref,
    payloadDigest: queued.payload.digest,
    firstEventId: newEventId(clock),
    tenantVersion: tenant.version,
    evidence: queued.payload.row,
  };
  if (work.request === null || sessionKey === null)
    return { ...base, ...toRecorded(queued, tenant, context) };
  const known = toKnownCall(queued, sessionKey, tenant, facts, context.ledger, context.environment);
  const { told } = work;
  const isUnconditional = told === undefined && queued.attempts >= context.maxAttempts;
  const added = [
    ...(queued.isTooLarge ? [tooLarge] : []),
    ...(known.isLineCut ? [lineCut] : []),
    ...(isUnconditional ? [conflict] : []),
  ];
  const { operands, realPaths } = queued.around;
  const { request } = work;
  const decideOn = (on: KnownFacts): Ruling =>
    context.decide(request, on, policy, { classify: queued.classify, operands, added });
  const correlationId = toCorrelation(known.place.rootKey, known.correlation, context);
  const holds = findHoldsOfCall(queued, context.holdsOf, {
    correlationId,
    line: known.line,
    nowMs: facts.serverMs,
  });
  let seen = withRightOfQuestion(request, known.facts);
  if (holds.length > 0) seen = Object.assign({}, seen, { holds });
  let ruling = decideOn(seen);
  if (!seen.isRevoked && isRevoked(queued, facts, ruling.planDigest)) {
    // Only the ruling says what the frozen plan is.
    seen = { ...seen, isRevoked: true };
    ruling = decideOn(seen);
  }
  if (told !== undefined) {
    // It has happened: recorded is what the caller was told, with what was known then.
    const { tenantId } = work;
    seen = {
      ...seen,
      ...emptyFacts({ tenantId, environment: context.environment, nowMs: told.atMs }),
      approval: null,
      holds: [],
    };
    const passed = decideOn(seen);
    ruling = told.by === "local_profile" ? toLocalRuling(passed) : toUnrecordedRuling(passed);
  }
  const nowMs = facts.serverMs;
  const answer = toAnswer(ruling, work.request, {
    decisionId: told?.decisionId ?? `dec_${newUuidV7(nowMs)}`,
    capabilityId: `cap_${newUuidV7(nowMs)}`,
    approvalId: `apr_${newUuidV7(nowMs)}`,
    correlationId,
    nowMs,
    policyRevision: policy.revision,
  });
  const change = toCallChange({ queued, sessionKey, known, ruling, answer, correlationId, key, facts });
  const entry = toLedgerEntry(change, known, nowMs);
  if (entry !== null) context.ledger.note(known.place, entry);
  const decisionRow: DecisionRow = {
    decisionId: answer.decision_id,
    tenantId: work.tenantId,
    sessionKey,
    callKey: queued.callKey,
    requestedEventId: base.firstEventId,
    runtime: work.runtime.kind,
    phase: work.request.phase,
    tool: work.request.tool,
    effectClass: ruling.classified.effect,
    answer: toStoredAnswer(answer),
    ...toStoredRequest(queued.requestRef, work.request, key, answer.decision_id, ruling.classified),
    payloadRef: queued.payload.ref,
    factsJson: toJsonColumn({
      operands,
      ...seen,
      ...(realPaths.size === 0 ? {} : { real_paths: Object.fromEntries(realPaths) }),
    }),
  };
  return {
    correlationId,
    automationDepth: known.automationDepth,
    heldSessions: known.heldSessions,
    decision: { ruling, answer, change },
    remark: null,
    decisionRow,
    change,
    isSeenByOthers: entry !== null,
    isUnconditional,
    ...base,
  };
}

/** What is recorded without a decision. A result can label its session: later calls are decided on that. */
function toRecorded(
  queued: QueuedCall,
  tenant: TenantFacts,
  context: PrepareContext,
): Pick<
  PreparedCall,
  | "correlationId"
  | "automationDepth"
  | "heldSessions"
  | "decision"
  | "remark"
  | "decisionRow"
  | "change"
  | "isSeenByOthers"
  | "isUnconditional"
> {
  const { sessionKey, work, policy, classify } = queued;
  const { facts, ledger, environment } = context;
  const stored = sessionKey === null ? undefined : facts.sessions.get(sessionKey)?.correlation_id;
  const plain = {
    correlationId: toCorrelation(sessionKey, stored, context),
    automationDepth: sessionKey === null ? 0 : toAutomationDepth(queued, sessionKey, facts, ledger),
    heldSessions: new Map<string, number>(),
    decision: null,
    remark: null,
    decisionRow: null,
    change: null,
    isSeenByOthers: false,
    isUnconditional: true,
  };
  const { reported } = work;
  if (reported === undefined || sessionKey === null) return plain;
  const remark = toRemark(queued, sessionKey, facts);
  const known = toKnownCall(queued, sessionKey, tenant, facts, ledger, environment);
  const change = toResultChange(sessionKey, known, labelsOfResult(reported, known.facts, policy, classify));
  if (change === null) return { ...plain, remark };
  const entry = toLedgerEntry(change, known, facts.serverMs);
  if (entry !== null) ledger.note(known.place, entry);
  return {
    correlationId: plain.correlationId,
    automationDepth: plain.automationDepth,
    heldSessions: known.heldSessions,
    decision: null,
    remark,
    decisionRow: null,
    change,
    isSeenByOthers: entry !== null,
    // What has happened is recorded in the end, whatever else changes.
    isUnconditional: queued.attempts >= context.maxAttempts,
  };
}

/** What a result says against the decisions on its call. */
function toRemark(
  { work, policy, classify }: QueuedCall,
  sessionKey: string,
  facts: GroupFacts,
): Draft | null {
  const { reported } = work;
  if (reported?.tool_call_id === undefined) return null;
  const key = resultKey({ sessionKey, toolCallId: reported.tool_call_id });
  const classified = classifySafely(classify, reported, policy);
  const mayPassUnasked = policy.localTools.includes(reported.tool);
  return checkResult(work, { reported, classified, mayPassUnasked }, facts.decided.get(key) ?? []);
}

/**
 * A runtime's own dialog comes after the call was allowed: an approval that the call used up within the life of its right
 * stands for the question too. The question gives no right of its own, so that nothing is used twice.
 */
function withRightOfQuestion(request: GateRequest, facts: KnownFacts): KnownFacts {
  const { approval } = facts;
  if (request.phase !== "permission" || approval?.state !== "consumed" || approval.consumedAtMs === null) {
    return facts;
  }
  const expiresAtMs = approval.consumedAtMs + capabilityTtlMs;
  return facts.nowMs < expiresAtMs
    ? { ...facts, approval: { ...approval, state: "approved", expiresAtMs } }
    : facts;
}

/** An answer as its row shows it: a rewritten input may hold a secret. */
function toStoredAnswer(answer: GateAnswer): GateAnswer {
  return answer.modified_input === undefined
    ? answer
    : { ...answer, modified_input: maskJson(answer.modified_input) as JsonObject };
}

/** The session's own, which a task may have set; else the one that follows from its ids; else one for this payload alone. */
function toCorrelation(
  sessionKey: string | null,
  stored: string | undefined,
  { clock }: PrepareContext,
): string {
  if (stored !== undefined) return `cor_${stored}`;
  return sessionKey === null ? `cor_${newUuidV7(clock.nowMs())}` : toCorrelationId(sessionKey);
}

/** Exact where masking changes nothing; else masked, with the exact form sealed beside it or put away in the vault. */
function toStoredRequest(
  requestRef: string | null,
  request: GateRequest,
  key: TenantKey,
  decisionId: string,
  classified: Classified,
): Pick<DecisionRow, "requestJson" | "requestSealed" | "requestRef"> {
  if (requestRef !== null) {
    // What is left of the input: enough to compare it with what ran.
    const digest = digestOf(request.tool, request.input, classified.entry?.volatile ?? []);
    return {
      requestJson: toJsonColumn({ ...request, input: {}, input_digest: digest }),
      requestSealed: null,
      requestRef,
    };
  }
  const exact = JSON.stringify(request);
  const masked = maskJson(request);
  // jsonb takes neither NUL nor half a surrogate pair.
  if (masked === request && !holdsUnstorable(exact)) {
    return { requestJson: exact, requestSealed: null, requestRef: null };
  }
  return {
    requestJson: toJsonColumn(masked),
    requestSealed: sealInline(key, requestPlace(decisionId), Buffer.from(exact, "utf8")),
    requestRef: null,
  };
}

/** The place that a sealed request is bound to; `openInline` wants the same. */
export function requestPlace(decisionId: string): string {
  return `gate.decisions/request_sealed/${decisionId}`;
}
