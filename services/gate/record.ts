import type { Observation } from "../../schemas/adapter.ts";
import type { Draft, Envelope, EnvelopeContext } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { Policy, Subject } from "../../schemas/generated/types.ts";
import { maskText } from "../platform/mask.ts";
import { toStorableText, toTextPreview } from "../platform/masked-preview.ts";
import { toConsumedDraft, toRequestDrafts, toVoidedDraft } from "./approval/approval-drafts.ts";
import type { CallChange, EndedRight } from "./call-change.ts";
import { toAnchorKey } from "./call-keys.ts";
import type { Ruling } from "./ruling.ts";
import type { HookWork } from "./hook-work.ts";
import type { AnchorRow, CapabilityRow } from "./store.ts";

/** A decision that is about to be committed. */
export interface MadeDecision {
  readonly ruling: Ruling;
  readonly answer: GateAnswer;
  readonly change: CallChange;
}

/** A hook call with everything that its events need. */
export interface RecordableWork {
  readonly work: HookWork;
  /** Null when the payload did not say which session it belongs to. */
  readonly sessionKey: string | null;
  readonly correlationId: string;
  readonly automationDepth: number;
  readonly payloadRef: string;
  readonly payloadDigest: string;
  readonly decision: MadeDecision | null;
  /** What a result says against the decisions on its call. */
  readonly remark: Draft | null;
  /** Id of the first observation, which for a gated call is its intent. */
  readonly firstEventId: string;
}

export interface RecordContext {
  readonly nowMs: number;
  readonly environment: string;
  newEventId(): string;
  /** The event id of an anchor that was committed before. */
  anchorOf(anchorKey: string): string | undefined;
}

/** What a group writes beside its decisions. */
export interface Consequences {
  readonly envelopes: readonly Envelope[];
  readonly anchors: readonly AnchorRow[];
  readonly capabilities: readonly CapabilityRow[];
}

/** Why a decision voids an approval. */
const voidedReason = "what would run is not what was to be agreed to";

/** Why a decision ends the right of the one before. */
const endedReason = "the call was decided again";

/** What the plan's resource shows in events. */
const resourceMaxChars = 512;

/**
 * The events, anchors and capabilities of a group, in the order in which its calls came: one call's event can be the
 * cause of the next one's.
 */
export function toConsequences(calls: readonly RecordableWork[], context: RecordContext): Consequences {
  const envelopes: Envelope[] = [];
  const anchors: AnchorRow[] = [];
  const capabilities: CapabilityRow[] = [];
  const fresh = new Map<string, string>();
  for (const call of calls) {
    const base = toBase(call, context);
    const subject = call.decision === null ? null : toSubject(call.decision.ruling);
    call.work.observations.forEach((observation, index) => {
      const eventId = index === 0 ? call.firstEventId : context.newEventId();
      const causationId = causeOf(
        observation,
        call.sessionKey,
        (key) => fresh.get(key) ?? context.anchorOf(key),
      );
      envelopes.push(
        toEnvelope(withRuling(observation.draft, call.decision, subject), {
          eventId,
          origin: observation.draft.type === "agent.prompt.submitted" ? "human" : "agent",
          causationId,
          payloadRef: call.payloadRef,
          payloadDigest: call.payloadDigest,
          ...base,
        }),
      );
      if (observation.anchor === undefined || call.sessionKey === null) return;
      const anchorKey = toAnchorKey(call.sessionKey, observation.anchor);
      fresh.set(anchorKey, eventId);
      anchors.push({ anchorKey, tenantId: call.work.tenantId, sessionKey: call.sessionKey, eventId });
    });
    if (call.remark !== null)
      envelopes.push(
        toEnvelope(call.remark, {
          eventId: context.newEventId(),
          origin: "agent",
          causationId: call.firstEventId,
          payloadRef: call.payloadRef,
          payloadDigest: call.payloadDigest,
          ...base,
        }),
      );
    if (call.decision !== null && subject !== null) {
      const rulings = toRulingEvents(call, call.decision, subject, { origin: "agent", ...base }, context);
      envelopes.push(...rulings.envelopes);
      if (rulings.capability !== null) capabilities.push(rulings.capability);
    }
  }
  return { envelopes, anchors, capabilities };
}

/** What all events of a call share. Spread it after other fields: see `draft`. */
function toBase(call: RecordableWork, context: RecordContext): Omit<EnvelopeContext, "eventId" | "origin"> {
  return {
    recordedAtMs: context.nowMs,
    tenantId: call.work.tenantId,
    environment: context.environment,
    runtime: call.work.runtime,
    correlationId: call.correlationId,
    automationDepth: call.automationDepth,
    userId: call.work.subject,
    traceparent: call.work.traceparent,
  };
}

function causeOf(
  { causes, draft: { causation_id: given } }: Observation,
  sessionKey: string | null,
  find: (anchorKey: string) => string | undefined,
): string | null {
  if (given !== undefined) return given;
  if (sessionKey === null) return null;
  for (const cause of causes) {
    const found = find(toAnchorKey(sessionKey, cause));
    if (found !== undefined) return found;
  }
  return null;
}

/** The intent with what the catalogue says of it: an adapter only guesses the effect class. */
function withRuling(one: Draft, decision: MadeDecision | null, subject: Subject | null): Draft {
  if (decision === null || subject === null) return one;
  switch (one.type) {
    case "agent.tool.requested":
    case "agent.permission.requested": {
      const { classified, planDigest } = decision.ruling;
      const ruled = { effect_class: classified.effect };
      const redacted_summary: object = Object.assign({}, one.redacted_summary, ruled);
      const fields = planDigest === null ? { subject } : { subject, plan_digest: planDigest };
      return Object.assign({}, one, { redacted_summary }, fields);
    }
    default:
      return one;
  }
}

function digestOf(ruling: Ruling): { plan_digest?: string } {
  return ruling.planDigest === null ? {} : { plan_digest: ruling.planDigest };
}

function toSubject({ plan, classified }: Ruling): Subject {
  return {
    tool: plan.tool,
    action: classified.action,
    resource_ref: classified.resource === null ? null : toTextPreview(classified.resource, resourceMaxChars),
    data_class: classified.dataClass,
  };
}

function toEndedDraft(right: EndedRight, shared: Partial<Omit<Draft, "type" | "redacted_summary">>): Draft {
  const ended = {
    reason: endedReason,
    scope: "capability",
    calls_used: 0,
    max_calls: right.maxCalls,
  } as const;
  const { plan_digest: _digest, ...rest } = shared;
  return draft("agent.capability.revoked", ended, {
    capability_id: right.capabilityId,
    ...(right.planDigest === null ? {} : { plan_digest: right.planDigest }),
    ...rest,
  });
}

function toRulingEvents(
  call: RecordableWork,
  { ruling, answer, change }: MadeDecision,
  subject: Subject,
  base: Omit<EnvelopeContext, "eventId">,
  context: RecordContext,
): { envelopes: Envelope[]; capability: CapabilityRow | null } {
  const { work } = call;
  const policy: Policy = {
    revision: answer.policy_revision,
    risk: ruling.risk,
    decision: answer.decision,
    reason_code: answer.reason_code,
    matched_rules: answer.matched_rules,
  };
  const shared = {
    policy,
    subject,
    ...digestOf(ruling),
    ...(work.call.agentId === undefined ? {} : { agent_id: work.call.agentId }),
    execution: {
      session_id: work.call.sessionId ?? null,
      turn_id: work.call.turnId ?? null,
      tool_call_id: work.call.toolCallId ?? null,
    },
  };
  const effect = ruling.classified.effect;
  const decisionId = answer.decision_id;
  const rulingId = context.newEventId();
  /** What follows from the ruling, each caused by it. */
  const toFollowers = (drafts: readonly Draft[]): Envelope[] =>
    drafts.map((one) => toEnvelope(one, { eventId: context.newEventId(), causationId: rulingId, ...base }));
  const ended = change.endedRight === null ? [] : [toEndedDraft(change.endedRight, shared)];
  const voided =
    change.voided === null ? [] : [toVoidedDraft({ ...change.voided, reason: voidedReason }, shared)];
  const resumed =
    change.resumed === null
      ? []
      : [
          draft(
            "agent.deferral.answered",
            {
              decision_id: decisionId,
              effect_class: effect,
              decision: answer.decision,
              deferred_since_at: change.resumed.sinceMs,
            },
            shared,
          ),
        ];
  if (answer.decision !== "allow" && answer.decision !== "modify") {
    const message = toStorableText(maskText(answer.message));
    const told = { decision_id: decisionId, effect_class: effect, message };
    const refused =
      answer.decision === "defer" && answer.defer !== undefined
        ? draft(
            "agent.tool.deferred",
            { ...told, waits_for: answer.defer.facts, deadline_at: Date.parse(answer.defer.until) },
            shared,
          )
        : draft("agent.tool.denied", told, shared);
    const { requested } = change;
    const asked =
      requested === null
        ? []
        : toRequestDrafts(
            {
              approvalId: requested.approvalId,
              decisionId,
              effect,
              riskScore: ruling.riskScore,
              expiresAtMs: Date.parse(requested.expiresAt),
              message,
              plan: requested.plan,
            },
            shared,
          );
    return {
      envelopes: [
        toEnvelope(refused, { eventId: rulingId, causationId: call.firstEventId, ...base }),
        ...toFollowers([...ended, ...voided, ...resumed, ...asked]),
      ],
      capability: null,
    };
  }
  const capabilityId = answer.capability?.id;
  const authorized = draft(
    "agent.tool.authorized",
    { decision_id: decisionId, effect_class: effect, modified: answer.decision === "modify" },
    capabilityId === undefined ? shared : { capability_id: capabilityId, ...shared },
  );
  const consumed =
    change.consumed === null ? [] : [toConsumedDraft(change.consumed.approvalId, decisionId, shared)];
  const envelopes: Envelope[] = [
    toEnvelope(authorized, { eventId: rulingId, causationId: call.firstEventId, ...base }),
    ...toFollowers([...ended, ...voided, ...resumed, ...consumed]),
  ];
  const { capability, plan_digest: planDigest } = answer;
  if (capability === undefined || planDigest === null || call.sessionKey === null) {
    return { envelopes, capability: null };
  }
  const maxCalls = answer.constraints.max_calls ?? 1;
  const issued = draft(
    "agent.capability.issued",
    { effect_class: effect, expires_at: Date.parse(capability.expires_at), max_calls: maxCalls },
    { capability_id: capability.id, ...shared },
  );
  envelopes.push(toEnvelope(issued, { eventId: context.newEventId(), causationId: rulingId, ...base }));
  return {
    envelopes,
    capability: {
      capabilityId: capability.id,
      tenantId: work.tenantId,
      decisionId,
      sessionKey: call.sessionKey,
      tool: ruling.plan.tool,
      resource: ruling.plan.resource,
      planDigest,
      constraints: answer.constraints,
      maxCalls,
      expiresAt: capability.expires_at,
    },
  };
}
