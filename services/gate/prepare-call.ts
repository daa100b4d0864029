import type { Observation } from "../../schemas/adapter.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GateRequest } from "../../schemas/gate.ts";
import type { Clock } from "../platform/clock.ts";
import { newEventId, newUuidV7 } from "../platform/ids.ts";
import { maskJson } from "../platform/mask.ts";
import type { EvidenceRow, TenantKey } from "../platform/vault-seal.ts";
import { sealInline, sealWith } from "../platform/vault-seal.ts";
import { toAnswer } from "./answer.ts";
import { toCorrelationId } from "./call-keys.ts";
import type { Facts, Stage } from "./decide.ts";
import { decide } from "./decide.ts";
import type { GroupFacts } from "./facts.ts";
import type { HookWork } from "./hook-work.ts";
import type { QueuedCall } from "./queued-call.ts";
import type { RecordableWork } from "./record.ts";
import type { Bundle } from "./rules.ts";
import type { DecisionRow } from "./store.ts";
import { holdsUnstorable, toJsonColumn } from "./store.ts";

/** A call with its decision, ready to be written. */
export interface PreparedCall extends RecordableWork {
  readonly queued: QueuedCall;
  /** Versions that the decision read. */
  readonly tenantVersion: number;
  readonly sessionVersion: number;
  /** It holds whatever changes meanwhile: an observation, or the deny after too many changes. */
  readonly isUnconditional: boolean;
  readonly evidence: EvidenceRow | null;
  readonly decisionRow: DecisionRow | null;
}

export interface PrepareContext {
  readonly bundle: Bundle;
  readonly stages: readonly Stage[];
  readonly clock: Clock;
  readonly nowMs: number;
  readonly facts: GroupFacts;
  readonly tenantKeys: ReadonlyMap<string, TenantKey>;
  /** From this attempt on a call is denied instead of decided again. */
  readonly maxAttempts: number;
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

/** Denies what could be recorded only by halves. */
const tooLargeStage: Stage = {
  name: "too-large",
  judge: () => ({
    verdicts: [
      {
        rule: "gate.event-too-large",
        decision: "deny",
        reason: "INPUT_UNREADABLE",
        message: "the call names more than one event can carry; split it into several calls",
        priority: 9_000,
        isAbsolute: true,
      },
    ],
  }),
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

/** Decides a call on the facts of its group, and seals its payload. */
export function prepareCall(queued: QueuedCall, context: PrepareContext): PreparedCall {
  const { sessionKey } = queued;
  const work = queued.isTooLarge ? withoutDetails(queued.work) : queued.work;
  const { facts, clock } = context;
  const key = context.tenantKeys.get(work.tenantId);
  const tenant = facts.tenants.get(work.tenantId);
  if (key === undefined || tenant === undefined) throw new Fault("INTERNAL", "a call lost its tenant");
  queued.payload ??= sealWith(key, { tenantId: work.tenantId, bytes: work.raw, dataClass: work.dataClass });
  const session = sessionKey === null ? undefined : facts.sessions.get(sessionKey);
  const sessionFacts = { version: session?.version ?? 0, labels: session?.labels ?? [] };
  const base = {
    queued,
    work,
    sessionKey,
    correlationId: toCorrelation(sessionKey, session?.correlation_id, context),
    payloadRef: queued.payload.ref,
    payloadDigest: queued.payload.digest,
    firstEventId: newEventId(clock),
    tenantVersion: tenant.version,
    sessionVersion: sessionFacts.version,
    evidence: queued.payload.row,
  };
  if (work.request === null || sessionKey === null) {
    return { ...base, decision: null, decisionRow: null, isUnconditional: true };
  }
  const known: Facts = { tenant, session: sessionFacts };
  const isUnconditional = queued.attempts >= context.maxAttempts;
  const stages = [
    ...context.stages,
    ...(queued.isTooLarge ? [tooLargeStage] : []),
    ...(isUnconditional ? [conflictStage] : []),
  ];
  const ruling = decide(work.request, known, context.bundle, { stages });
  const answer = toAnswer(ruling, work.request, {
    decisionId: `dec_${newUuidV7(context.nowMs)}`,
    capabilityId: `cap_${newUuidV7(context.nowMs)}`,
    correlationId: base.correlationId,
    nowMs: context.nowMs,
    policyRevision: context.bundle.revision,
  });
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
    answer,
    ...toStoredRequest(queued.requestRef, work.request, key, answer.decision_id),
    payloadRef: queued.payload.ref,
    factsJson: JSON.stringify(known),
  };
  return { ...base, decision: { ruling, answer }, decisionRow, isUnconditional };
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
): Pick<DecisionRow, "requestJson" | "requestSealed" | "requestRef"> {
  if (requestRef !== null) {
    return { requestJson: toJsonColumn({ ...request, input: {} }), requestSealed: null, requestRef };
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
