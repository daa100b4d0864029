import type { EventType } from "./catalog.ts";
import { catalog } from "./catalog.ts";
import type {
  EnvelopeFields,
  EpochMs,
  Execution,
  Policy,
  Runtime,
  Subject,
  Summaries,
} from "./generated/types.ts";

/** One event as it travels: wire names, decoded by Avro. `T` narrows type and summary together. */
export type Envelope<T extends EventType = EventType> = {
  [K in T]: Omit<EnvelopeFields, "type"> & { type: K; redacted_summary: Summaries[K] };
}[T];

/**
 * An event before it has an id, a time and an owner: what pure code makes.
 * Everything that it leaves out is filled in by `toEnvelope` from the context.
 */
export type Draft<T extends EventType = EventType> = {
  [K in T]: {
    readonly type: K;
    readonly redacted_summary: Summaries[K];
    readonly occurred_at?: EpochMs;
    readonly runtime?: Runtime;
    readonly agent_id?: string;
    readonly user_id?: string;
    readonly execution?: Partial<Execution>;
    readonly causation_id?: string;
    readonly policy?: Policy;
    readonly subject?: Subject;
    readonly plan_digest?: string;
    readonly capability_id?: string;
    readonly approval_id?: string;
    readonly effect_id?: string;
    readonly receipt_id?: string;
  };
}[T];

/** What the rim knows and a draft does not. Times are UTC milliseconds. */
export interface EnvelopeContext {
  readonly eventId: string;
  readonly recordedAtMs: EpochMs;
  readonly tenantId: string;
  readonly environment: string;
  readonly runtime: Runtime;
  readonly correlationId: string;
  readonly origin: string;
  readonly userId?: string | null;
  readonly causationId?: string | null;
  readonly hopCount?: number;
  readonly automationDepth?: number;
  readonly attempt?: number;
  readonly payloadRef?: string | null;
  readonly payloadDigest?: string | null;
  readonly traceparent?: string | null;
}

/** Makes a draft of type `T`; the summary is checked against the type's own record. */
export function draft<T extends EventType>(
  type: T,
  summary: Summaries[T],
  rest: Omit<Draft<T>, "type" | "redacted_summary"> = {} as Omit<Draft<T>, "type" | "redacted_summary">,
): Draft<T> {
  // A spread that comes first gives each object a hidden class of its own in V8 up to Node 20, on the heap that only full
  // collections clear; after a property it does not. That holds wherever objects are made for each call.
  return { type, redacted_summary: summary, ...rest } as unknown as Draft<T>;
}

/** Completes a draft. Pure: id, time and tenant are handed in. */
export function toEnvelope<T extends EventType>(one: Draft<T>, context: EnvelopeContext): Envelope<T> {
  const execution = one.execution ?? {};
  const fields: Omit<EnvelopeFields, "type"> & { type: EventType; redacted_summary: unknown } = {
    event_id: context.eventId,
    type: one.type,
    schema_version: catalog[one.type].version,
    occurred_at: one.occurred_at ?? context.recordedAtMs,
    recorded_at: context.recordedAtMs,
    tenant_id: context.tenantId,
    environment: context.environment,
    runtime: one.runtime ?? context.runtime,
    actor: { user_id: one.user_id ?? context.userId ?? null, agent_id: one.agent_id ?? null },
    execution: {
      task_id: execution.task_id ?? null,
      session_id: execution.session_id ?? null,
      turn_id: execution.turn_id ?? null,
      tool_call_id: execution.tool_call_id ?? null,
      attempt: execution.attempt ?? context.attempt ?? 1,
    },
    correlation_id: context.correlationId,
    causation_id: one.causation_id ?? context.causationId ?? null,
    origin: context.origin,
    hop_count: context.hopCount ?? 0,
    automation_depth: context.automationDepth ?? 0,
    policy: one.policy ?? null,
    capability_id: one.capability_id ?? null,
    approval_id: one.approval_id ?? null,
    plan_digest: one.plan_digest ?? null,
    effect_id: one.effect_id ?? null,
    receipt_id: one.receipt_id ?? null,
    subject: one.subject ?? null,
    payload_ref: context.payloadRef ?? null,
    payload_digest: context.payloadDigest ?? null,
    trace: context.traceparent == null ? null : { traceparent: context.traceparent },
    redacted_summary: one.redacted_summary,
  };
  return fields as unknown as Envelope<T>;
}

/** The Kafka key: the ordering key of the event's type, as a string. */
export function toKey(event: Envelope): string {
  const rule = catalog[event.type].key;
  switch (rule) {
    case "tenant/correlation":
      return `${event.tenant_id}/${event.correlation_id}`;
    case "tenant":
      return event.tenant_id;
    case "consumer":
      return "consumer" in event.redacted_summary ? event.redacted_summary.consumer : event.tenant_id;
  }
}
