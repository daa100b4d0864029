import type { Envelope } from "../../schemas/envelope.ts";
import type { Outcome } from "../../schemas/generated/types.ts";
import type { Source } from "../kit/processor.ts";
import { own, providerOf, semantic } from "./conventions.ts";
import { parseTraceparent } from "./ids.ts";
import type { PartMaker, Place, SpanFields } from "./place.ts";
import { parentRanks, partMaker, toPlace, toStorable } from "./place.ts";
import type { AttributeValue, Attributes, CauseRow, DeliveryRow, SpanState, TraceChange } from "./words.ts";

/** Longest text of an attribute. */
const maxTextChars = 256;
/** Rules of one decision that its span names. */
const maxRules = 20;

/** Types that say something about a span. Text of people and of tools is in none of their attributes. */
export const tracedTypes = [
  "agent.session.started",
  "agent.session.ended",
  "agent.session.compacted",
  "agent.turn.started",
  "agent.turn.completed",
  "agent.prompt.submitted",
  "agent.subagent.started",
  "agent.subagent.stopped",
  "agent.model.completed",
  "agent.tool.requested",
  "agent.tool.authorized",
  "agent.tool.denied",
  "agent.tool.deferred",
  "agent.tool.completed",
  "agent.permission.requested",
  "agent.permission.refused",
  "agent.approval.requested",
  "agent.approval.granted",
  "agent.approval.refused",
  "agent.approval.expired",
  "agent.approval.voided",
  "agent.approval.consumed",
  "agent.capability.issued",
  "agent.capability.spent",
  "agent.capability.revoked",
  "agent.capability.expired",
  "agent.effect.attempted",
  "agent.effect.receipted",
  "agent.effect.unresolved",
  "agent.effect.reconciled",
  "agent.effect.ungated",
  "agent.plan.diverged",
] as const;
export type TracedEvent = Envelope<(typeof tracedTypes)[number]>;

/** Ranks of ends. A provisional one leaves the span open until its trace is quiet. */
const ends = { none: 0, provisional: 1, final: 2, surer: 3 } as const;
/** Ranks of statuses: what was found out later outranks what was not known. */
const statuses = { none: 0, unresolved: 1, told: 2, failed: 3, reconciled: 4 } as const;

/** One event as parts of spans. */
export function toTraceChange(event: TracedEvent, source: Source): TraceChange {
  const make = partMaker(event);
  const { own: ownParts, cause = null, isDelivered = false } = toParts(event, make);
  const client = event.trace === null ? null : parseTraceparent(event.trace.traceparent);
  const traceparent = client === null ? null : `00-${client.traceId}-${client.spanId}-01`;
  const [first, ...rest] = ownParts;
  const spans =
    first === undefined || traceparent === null ? ownParts : [{ ...first, links: [traceparent] }, ...rest];
  const eventId = uuidOf(event.event_id);
  return {
    tenantId: toStorable(event.tenant_id),
    correlationId: toStorable(event.correlation_id),
    eventId,
    at: event.recorded_at,
    client: traceparent === null ? null : { at: event.recorded_at, eventId, traceparent },
    attributes: compact({ [own.environment]: event.environment }),
    spans,
    cause: cause === null ? null : { ...cause, eventId, at: event.recorded_at },
    delivery: isDelivered && first !== undefined ? toDelivery(event, first.spanId, source) : null,
  };
}

interface Parts {
  /** The event's own span first, then those that it merely names. */
  readonly own: readonly SpanState[];
  readonly cause?: Pick<CauseRow, "spanId" | "topic">;
  /** Its way over the bus is traced too. */
  readonly isDelivered?: boolean;
}

function toParts(event: TracedEvent, make: PartMaker): Parts {
  const at = event.recorded_at;
  const place = toPlace(event, make);
  const session = event.execution.session_id ?? "";
  switch (event.type) {
    case "agent.session.started":
    case "agent.session.ended":
      return toSession(event, make);
    case "agent.session.compacted":
      return pointOf(make.part("compaction", [event.event_id], point(event, place)), place);
    case "agent.turn.started":
    case "agent.turn.completed":
    case "agent.prompt.submitted":
      return toTurn(event, make);
    case "agent.subagent.started":
    case "agent.subagent.stopped":
      return toAgent(event, make, session);
    case "agent.model.completed":
      return toModel(event, make, place);
    case "agent.tool.requested":
    case "agent.permission.requested": {
      const call = callOf(event, make, place, { startRank: 2, startedAt: at });
      return {
        own: [{ ...call, isReal: true }, ...place.containers],
        cause: { spanId: call.spanId, topic: "call" },
      };
    }
    case "agent.tool.completed": {
      const { outcome, duration_ms: durationMs } = event.redacted_summary;
      const call = callOf(event, make, place, {
        ...startedBefore(at, durationMs),
        endRank: ends.surer,
        endedAt: at,
        ...statusOf(outcome, "tool_failed"),
      });
      const run = runOf(event, make, call);
      return { own: [{ ...call, isReal: true }, ...(run === null ? [] : [run]), ...place.containers] };
    }
    case "agent.permission.refused": {
      const call = callOf(event, make, place, { endRank: ends.provisional, endedAt: at });
      const refused = {
        ...call.attributes,
        [own.outcome]: `refused_by_${event.redacted_summary.refused_by}`,
      };
      return { own: [{ ...call, isReal: true, attributes: refused }, ...place.containers] };
    }
    case "agent.tool.authorized":
    case "agent.tool.denied":
    case "agent.tool.deferred":
      return toDecision(event, make, place);
    case "agent.approval.requested":
    case "agent.approval.granted":
    case "agent.approval.refused":
    case "agent.approval.expired":
    case "agent.approval.voided":
    case "agent.approval.consumed":
      return toApproval(event, make, place);
    case "agent.capability.issued":
    case "agent.capability.spent":
    case "agent.capability.revoked":
    case "agent.capability.expired":
      return toCapability(event, make, place);
    case "agent.effect.attempted":
    case "agent.effect.receipted":
    case "agent.effect.unresolved":
    case "agent.effect.reconciled":
      return toEffect(event, make, place);
    case "agent.effect.ungated": {
      const call = callOf(event, make, place, {});
      const part = make.part("ungated", [event.event_id], {
        ...point(event, under(call)),
        statusRank: statuses.failed,
        status: "error",
        errorType: "ungated_effect",
      });
      return { own: [part, call, ...place.containers] };
    }
    case "agent.plan.diverged": {
      const decision = make.part("decision", [event.redacted_summary.decision_id], hang(place));
      const part = make.part("divergence", [event.event_id], {
        ...point(event, under(decision)),
        statusRank: statuses.failed,
        status: "error",
        errorType: "plan_diverged",
      });
      return { own: [part, decision, ...place.containers] };
    }
  }
}

function toSession(event: Envelope<"agent.session.started" | "agent.session.ended">, make: PartMaker): Parts {
  const sessionId = event.execution.session_id;
  if (sessionId === null) return { own: [] };
  const at = event.recorded_at;
  const isStart = event.type === "agent.session.started";
  const session = make.part("session", [sessionId], {
    isReal: true,
    causeEvent: isStart ? causeOf(event) : null,
    ...(isStart ? { startRank: 2, startedAt: at } : { endRank: ends.final, endedAt: at }),
    attributes: compact({
      ...agentOperation,
      [semantic.ATTR_GEN_AI_CONVERSATION_ID]: sessionId,
      [semantic.ATTR_GEN_AI_AGENT_NAME]: event.runtime.kind,
      [semantic.ATTR_GEN_AI_REQUEST_MODEL]: isStart ? event.redacted_summary.model : null,
      [own.trigger]: isStart ? event.redacted_summary.source : null,
      [own.user]: event.actor.user_id,
    }),
  });
  return {
    own: [session],
    ...(isStart ? { cause: { spanId: session.spanId, topic: "session" as const } } : {}),
  };
}

function toTurn(
  event: Envelope<"agent.turn.started" | "agent.turn.completed" | "agent.prompt.submitted">,
  make: PartMaker,
): Parts {
  const { session_id: sessionId, turn_id: turnId } = event.execution;
  const at = event.recorded_at;
  const place = toPlace({ ...event, execution: { ...event.execution, turn_id: null } }, make, null);
  if (sessionId === null || turnId === null) return { own: place.containers };
  const attributes = { [semantic.ATTR_GEN_AI_CONVERSATION_ID]: sessionId, [own.turn]: turnId };
  const turn = (fields: SpanFields, more: Optional = {}): SpanState =>
    make.part("turn", [sessionId, turnId], {
      ...hang(place),
      isReal: true,
      ...fields,
      attributes: compact({ ...attributes, ...more }),
    });
  switch (event.type) {
    case "agent.prompt.submitted":
      return { own: [turn({ startRank: 1, startedAt: at }), ...place.containers] };
    case "agent.turn.started": {
      const part = turn({ startRank: 2, startedAt: at }, { [own.trigger]: event.redacted_summary.trigger });
      return { own: [part, ...place.containers], cause: { spanId: part.spanId, topic: "turn" } };
    }
    case "agent.turn.completed": {
      const { outcome, error_kind: errorKind } = event.redacted_summary;
      const status = statusOf(outcome, errorKind ?? "turn_failed");
      return {
        own: [
          turn({ endRank: ends.final, endedAt: at, ...status }, { [own.outcome]: outcome }),
          ...place.containers,
        ],
      };
    }
  }
}

function toAgent(
  event: Envelope<"agent.subagent.started" | "agent.subagent.stopped">,
  make: PartMaker,
  session: string,
): Parts {
  const { subagent_id: agentId, subagent_kind: kind } = event.redacted_summary;
  const at = event.recorded_at;
  const by = event.actor.agent_id === agentId ? null : event.actor.agent_id;
  const place = toPlace(event, make, by);
  const isStart = event.type === "agent.subagent.started";
  const callId = event.execution.tool_call_id;
  const call = callId === null ? null : callOf(event, make, place, {});
  const agent = make.part("agent", [session, agentId], {
    ...hang(call === null ? place : under(call)),
    isReal: true,
    causeEvent: isStart ? causeOf(event) : null,
    ...(isStart ? { startRank: 2, startedAt: at } : { endRank: ends.final, endedAt: at }),
    ...(isStart ? {} : statusOf(event.redacted_summary.outcome, "agent_failed")),
    attributes: compact({
      ...agentOperation,
      [semantic.ATTR_GEN_AI_AGENT_ID]: agentId,
      [semantic.ATTR_GEN_AI_AGENT_NAME]: kind,
      [semantic.ATTR_GEN_AI_CONVERSATION_ID]: event.execution.session_id,
      [own.outcome]: isStart ? null : event.redacted_summary.outcome,
    }),
  });
  return {
    own: [agent, ...(call === null ? [] : [call]), ...place.containers],
    ...(isStart ? { cause: { spanId: agent.spanId, topic: "agent" as const } } : {}),
  };
}

/** Two reports of one model call are one span; one without an id of its own stands for itself. */
function modelCallOf({
  event_id: eventId,
  execution,
  redacted_summary: { model_call_id: callId },
}: Envelope<"agent.model.completed">): readonly string[] {
  return callId === null ? [eventId] : [execution.session_id ?? "", callId, String(execution.attempt)];
}

function toModel(event: Envelope<"agent.model.completed">, make: PartMaker, place: Place): Parts {
  const at = event.recorded_at;
  const summary = event.redacted_summary;
  const start = startedBefore(at, summary.duration_ms);
  return pointOf(
    make.part("model", modelCallOf(event), {
      ...hang(place),
      isReal: true,
      startRank: 2,
      startedAt: start.startedAt ?? at,
      endRank: ends.final,
      endedAt: at,
      ...statusOf(summary.outcome, summary.error_kind ?? "model_failed"),
      attributes: compact({
        [semantic.ATTR_GEN_AI_OPERATION_NAME]: semantic.GEN_AI_OPERATION_NAME_VALUE_CHAT,
        [semantic.ATTR_GEN_AI_REQUEST_MODEL]: summary.model,
        [semantic.ATTR_GEN_AI_PROVIDER_NAME]: providerOf(summary.model),
        [semantic.ATTR_GEN_AI_CONVERSATION_ID]: event.execution.session_id,
        [semantic.ATTR_GEN_AI_USAGE_INPUT_TOKENS]: toNumber(summary.input_tokens),
        [semantic.ATTR_GEN_AI_USAGE_OUTPUT_TOKENS]: toNumber(summary.output_tokens),
        [semantic.ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS]: toNumber(summary.cached_input_tokens),
        [semantic.ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS]: toNumber(summary.cache_write_tokens),
        [semantic.ATTR_GEN_AI_USAGE_REASONING_OUTPUT_TOKENS]: toNumber(summary.reasoning_tokens),
        [own.costMicros]: toNumber(summary.cost_micros),
        [own.outcome]: summary.outcome,
      }),
    }),
    place,
  );
}

function toDecision(
  event: Envelope<"agent.tool.authorized" | "agent.tool.denied" | "agent.tool.deferred">,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const summary = event.redacted_summary;
  const call = callOf(event, make, place, {
    // A call that was refused is over, unless it is asked for once more under the same id.
    ...(event.type === "agent.tool.denied" ? { endRank: ends.provisional, endedAt: at } : {}),
    ...("deadline_at" in summary ? { holdsUntil: summary.deadline_at } : {}),
  });
  const decision = make.part("decision", [summary.decision_id], {
    ...hang(under(call)),
    isReal: true,
    causeEvent: causeOf(event),
    // The intent's time is taken from its event, when it is there: see assemble.ts.
    startRank: 1,
    startedAt: at,
    endRank: ends.final,
    endedAt: at,
    attributes: compact({
      [own.decisionId]: summary.decision_id,
      [own.decision]: event.policy?.decision,
      [own.reasonCode]: event.policy?.reason_code,
      [own.risk]: event.policy?.risk,
      [own.revision]: event.policy?.revision,
      [own.rules]: event.policy?.matched_rules.slice(0, maxRules),
      [own.planDigest]: event.plan_digest,
    }),
  });
  return { own: [decision, call, ...place.containers], isDelivered: true };
}

function toDelivery(event: TracedEvent, spanId: string, source: Source): DeliveryRow {
  return {
    eventId: uuidOf(event.event_id),
    eventType: event.type,
    spanId,
    destination: source.topic,
    partition: source.partition,
    offset: source.offset,
    recordedAt: event.recorded_at,
    publishedAt: source.timestampMs ?? null,
    receivedAt: source.receivedMs ?? null,
  };
}

function toApproval(
  event: Envelope<
    | "agent.approval.requested"
    | "agent.approval.granted"
    | "agent.approval.refused"
    | "agent.approval.expired"
    | "agent.approval.voided"
    | "agent.approval.consumed"
  >,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const summary = event.redacted_summary;
  // `consumed` is told by the later call; its decision is not the one that asked.
  const isConsumed = event.type === "agent.approval.consumed";
  const decision = isConsumed ? null : make.part("decision", [summary.decision_id], hang(place));
  const id = event.approval_id ?? event.event_id;
  const outcome = event.type.slice("agent.approval.".length);
  const isEnd = event.type !== "agent.approval.requested" && !isConsumed;
  const isDecided = event.type === "agent.approval.granted" || event.type === "agent.approval.refused";
  const approval = make.part("approval", [id], {
    ...hang(decision === null ? place : under(decision)),
    isReal: !isConsumed,
    ...(event.type === "agent.approval.requested"
      ? { startRank: 2, startedAt: at, holdsUntil: event.redacted_summary.expires_at }
      : {}),
    ...(isEnd ? { endRank: isDecided ? ends.surer : ends.final, endedAt: at } : {}),
    attributes: compact({
      [own.approvalId]: event.approval_id,
      [own.planDigest]: event.plan_digest,
      [own.risk]: event.policy?.risk,
      [own.outcome]: isEnd ? outcome : null,
      [own.consumed]: isConsumed ? true : null,
    }),
  });
  return { own: [approval, ...(decision === null ? [] : [decision]), ...place.containers] };
}

function toCapability(
  event: Envelope<
    | "agent.capability.issued"
    | "agent.capability.spent"
    | "agent.capability.revoked"
    | "agent.capability.expired"
  >,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const id = event.capability_id ?? event.event_id;
  if (event.type === "agent.capability.issued") {
    const call = callOf(event, make, place, {});
    const issued = make.part("capability", [id], {
      ...hang(under(call)),
      isReal: true,
      startRank: 2,
      startedAt: at,
      endRank: ends.final,
      endedAt: at,
      attributes: compact({
        [own.capabilityId]: id,
        [own.calls]: event.redacted_summary.max_calls,
        [own.planDigest]: event.plan_digest,
      }),
    });
    return { own: [issued, call, ...place.containers] };
  }
  const right = make.part("capability", [id], hang(place));
  const part =
    event.type === "agent.capability.spent"
      ? make.part("spend", [id, event.redacted_summary.usage_id], point(event, under(right)))
      : make.part("revocation", [id, event.event_id], point(event, under(right)));
  const attributes = compact({
    [own.capabilityId]: id,
    [own.outcome]: event.type.slice("agent.capability.".length),
    [own.calls]: event.redacted_summary.calls_used,
  });
  return { own: [{ ...part, attributes }, right, ...place.containers] };
}

function toEffect(
  event: Envelope<
    | "agent.effect.attempted"
    | "agent.effect.receipted"
    | "agent.effect.unresolved"
    | "agent.effect.reconciled"
  >,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const { capability_id: capabilityId } = event;
  const call = event.execution.tool_call_id === null ? null : callOf(event, make, place, {});
  const right = capabilityId === null ? null : make.part("capability", [capabilityId], hang(place));
  const home = call !== null ? under(call) : right !== null ? under(right, parentRanks.right) : place;
  const named = [...(call === null ? [] : [call]), ...(right === null ? [] : [right]), ...place.containers];
  const id = event.effect_id ?? event.causation_id ?? event.event_id;
  const shared = {
    [own.effectId]: event.effect_id,
    [own.capabilityId]: capabilityId,
    [own.effectClass]: event.redacted_summary.effect_class,
  };
  const effect = (fields: SpanFields, more: Optional = {}): SpanState =>
    make.part("effect", [id], {
      ...hang(home),
      isReal: true,
      ...fields,
      attributes: compact({ ...shared, ...more }),
    });
  switch (event.type) {
    case "agent.effect.attempted": {
      const part = effect(
        { startRank: 2, startedAt: at, causeEvent: call === null ? causeOf(event) : null },
        { [own.connector]: event.redacted_summary.connector },
      );
      return { own: [part, ...named], cause: { spanId: part.spanId, topic: "effect" } };
    }
    case "agent.effect.receipted": {
      const { outcome, duration_ms: durationMs } = event.redacted_summary;
      const status = statusOf(outcome, "effect_failed");
      const times = { ...startedBefore(at, durationMs), endRank: ends.surer, endedAt: at };
      return {
        own: [
          effect({ ...times, ...status }, { [own.receiptId]: event.receipt_id, [own.outcome]: outcome }),
          ...named,
        ],
      };
    }
    case "agent.effect.unresolved":
      return {
        own: [
          effect({
            endRank: ends.final,
            endedAt: at,
            statusRank: statuses.unresolved,
            status: "error",
            errorType: `unresolved_${event.redacted_summary.cause}`,
          }),
          ...named,
        ],
      };
    case "agent.effect.reconciled": {
      const { outcome } = event.redacted_summary;
      const status = statusOf(outcome, "effect_failed");
      const settled = effect(
        status.status === undefined ? {} : { ...status, statusRank: statuses.reconciled },
      );
      const part = make.part("reconciliation", [event.event_id], point(event, under(settled)));
      return { own: [{ ...part, attributes: { [own.outcome]: outcome } }, settled, ...named] };
    }
  }
}

/**
 * What the runner did, between the decision and the result: the call waits for the gate and for people, the run does not.
 * By the runtime's stopwatch; without it, from the call's last decision before the result (assemble.ts). Null: it did not run.
 */
function runOf(event: Envelope<"agent.tool.completed">, make: PartMaker, call: SpanState): SpanState | null {
  const { outcome, duration_ms: durationMs } = event.redacted_summary;
  if (outcome === "blocked") return null;
  return make.part("run", callIds(event), {
    ...hang(under(call)),
    isReal: true,
    ...startedBefore(event.recorded_at, durationMs),
    endRank: ends.final,
    endedAt: event.recorded_at,
    ...statusOf(outcome, "tool_failed"),
    attributes: compact({
      [semantic.ATTR_GEN_AI_TOOL_NAME]: event.subject?.tool,
      [own.runtime]: event.runtime.kind,
      [own.outcome]: outcome,
    }),
  });
}

const isIntent = (event: TracedEvent): boolean =>
  event.type === "agent.tool.requested" || event.type === "agent.permission.requested";

/** What a call is named by: the runtime's id, or the event of its intent. */
function callIds(event: TracedEvent): readonly string[] {
  const { session_id: sessionId, tool_call_id: callId } = event.execution;
  return callId !== null
    ? [sessionId ?? "", callId]
    : [uuidOf((isIntent(event) ? null : event.causation_id) ?? event.event_id)];
}

/** The span of the call that an event is about; without the runtime's id it is named by its intent's event. */
function callOf(event: TracedEvent, make: PartMaker, place: Place, fields: SpanFields): SpanState {
  const { tool_call_id: callId } = event.execution;
  const outcome = event.type === "agent.tool.completed" ? event.redacted_summary.outcome : null;
  const isAbout = isIntent(event) || event.type === "agent.tool.completed";
  return make.part("call", callIds(event), {
    ...hang(place),
    ...fields,
    attributes: compact({
      [semantic.ATTR_GEN_AI_OPERATION_NAME]: semantic.GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL,
      [semantic.ATTR_GEN_AI_TOOL_NAME]: event.subject?.tool,
      [semantic.ATTR_GEN_AI_TOOL_CALL_ID]: callId,
      [own.action]: event.subject?.action,
      [own.runtime]: isAbout ? event.runtime.kind : null,
      [own.effectClass]:
        event.type === "agent.tool.requested" || event.type === "agent.permission.requested"
          ? event.redacted_summary.effect_class
          : null,
      [own.outcome]: outcome,
    }),
  });
}

const agentOperation = {
  [semantic.ATTR_GEN_AI_OPERATION_NAME]: semantic.GEN_AI_OPERATION_NAME_VALUE_INVOKE_AGENT,
};

function hang({ parentId, parentRank }: Pick<Place, "parentId" | "parentRank">): SpanFields {
  return { parentId, parentRank };
}

function under(parent: SpanState, parentRank: number = parentRanks.known): Place {
  return { parentId: parent.spanId, parentRank, containers: [] };
}

/** A span of no length. */
function point(event: TracedEvent, place: Place): SpanFields {
  return {
    ...hang(place),
    isReal: true,
    startRank: 2,
    startedAt: event.recorded_at,
    endRank: ends.final,
    endedAt: event.recorded_at,
  };
}

function pointOf(part: SpanState, place: Place): Parts {
  return { own: [part, ...place.containers] };
}

/** Denied is no fault of the system, and neither is what a person stopped. */
function statusOf(outcome: Outcome, errorType: string): SpanFields {
  switch (outcome) {
    case "succeeded":
      return { statusRank: statuses.told, status: "ok" };
    case "failed":
      return { statusRank: statuses.failed, status: "error", errorType: toText(errorType) };
    case "blocked":
    case "interrupted":
    case "unknown":
      return {};
  }
}

/** The start as the runtime's own stopwatch tells, counted back from our clock. */
function startedBefore(at: number, durationMs: bigint | null): SpanFields {
  if (durationMs === null || durationMs < 0n || durationMs > BigInt(at)) return {};
  return { startRank: 1, startedAt: at - Number(durationMs) };
}

function causeOf(event: TracedEvent): string | null {
  const cause = event.causation_id;
  return cause !== null && /^evt_[0-9a-f-]{36}$/.test(cause) ? uuidOf(cause) : null;
}

function uuidOf(eventId: string): string {
  return toStorable(eventId.startsWith("evt_") ? eventId.slice("evt_".length) : eventId);
}

type Optional = Readonly<Record<string, AttributeValue | null | undefined>>;

function compact(values: Optional): Attributes {
  const kept: Record<string, AttributeValue> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined) continue;
    if (typeof value === "string") kept[name] = toText(value);
    else if (Array.isArray(value)) kept[name] = (value as readonly string[]).map(toText);
    else kept[name] = value;
  }
  return kept;
}

function toText(text: string): string {
  return toStorable(text.slice(0, maxTextChars));
}

/** Whole numbers that a double cannot hold are left out: a wrong figure is worse than none. */
function toNumber(value: bigint | null): number | null {
  return value !== null && value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : null;
}
