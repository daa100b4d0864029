import type { Envelope } from "../../schemas/envelope.ts";
import type { EpochMs } from "../../schemas/generated/types.ts";
import type { Source } from "../kit/processor.ts";
import { digestVersion, toDigests } from "./row-digest.ts";

/** A value as jsonb keeps it. */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** One row of the trail. Names are those of the columns; times are UTC milliseconds. */
export interface AuditRow {
  readonly event_id: string;
  readonly topic: string;
  readonly partition: number;
  readonly kafka_offset: bigint;
  readonly tenant_id: string;
  readonly event_type: string;
  readonly schema_version: string;
  readonly occurred_at: EpochMs;
  readonly recorded_at: EpochMs;
  readonly environment: string;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly runtime_kind: string;
  readonly adapter_version: string;
  readonly runtime_version: string | null;
  readonly permission_mode: string | null;
  readonly sandbox: string | null;
  readonly task_id: string | null;
  readonly session_id: string | null;
  readonly turn_id: string | null;
  readonly tool_call_id: string | null;
  readonly attempt: number;
  readonly correlation_id: string;
  readonly causation_id: string | null;
  readonly origin: string;
  readonly hop_count: number;
  readonly automation_depth: number;
  readonly tool: string | null;
  readonly action: string | null;
  readonly resource_ref: string | null;
  readonly data_class: string | null;
  readonly policy_revision: string | null;
  readonly risk: string | null;
  readonly decision: string | null;
  readonly reason_code: string | null;
  readonly matched_rules: readonly string[] | null;
  readonly decision_id: string | null;
  readonly capability_id: string | null;
  readonly approval_id: string | null;
  readonly plan_digest: string | null;
  readonly effect_id: string | null;
  readonly receipt_id: string | null;
  readonly payload_ref: string | null;
  readonly payload_digest: string | null;
  readonly traceparent: string | null;
  readonly summary: JsonValue;
  readonly digest_version: number;
  readonly content_digest: Buffer;
  readonly row_digest: Buffer;
}

/** One event as a row: nothing is judged, nothing is left out. */
export function toAuditRow(event: Envelope, source: Source): AuditRow {
  const summary = toJson(event.redacted_summary) as { readonly [key: string]: JsonValue };
  const decisionId = summary["decision_id"];
  const fields = {
    event_id: clean(event.event_id.slice("evt_".length)),
    topic: source.topic,
    partition: source.partition,
    kafka_offset: source.offset,
    tenant_id: clean(event.tenant_id),
    event_type: event.type,
    schema_version: clean(event.schema_version),
    occurred_at: event.occurred_at,
    recorded_at: event.recorded_at,
    environment: clean(event.environment),
    user_id: clean(event.actor.user_id),
    agent_id: clean(event.actor.agent_id),
    runtime_kind: clean(event.runtime.kind),
    adapter_version: clean(event.runtime.adapter_version),
    runtime_version: clean(event.runtime.runtime_version),
    permission_mode: clean(event.runtime.permission_mode),
    sandbox: clean(event.runtime.sandbox),
    task_id: clean(event.execution.task_id),
    session_id: clean(event.execution.session_id),
    turn_id: clean(event.execution.turn_id),
    tool_call_id: clean(event.execution.tool_call_id),
    attempt: event.execution.attempt,
    correlation_id: clean(event.correlation_id),
    causation_id: clean(event.causation_id),
    origin: clean(event.origin),
    hop_count: event.hop_count,
    automation_depth: event.automation_depth,
    tool: clean(event.subject?.tool ?? null),
    action: clean(event.subject?.action ?? null),
    resource_ref: clean(event.subject?.resource_ref ?? null),
    data_class: clean(event.subject?.data_class ?? null),
    policy_revision: clean(event.policy?.revision ?? null),
    risk: clean(event.policy?.risk ?? null),
    decision: clean(event.policy?.decision ?? null),
    reason_code: clean(event.policy?.reason_code ?? null),
    matched_rules: event.policy === null ? null : event.policy.matched_rules.map(clean),
    decision_id: clean(typeof decisionId === "string" ? decisionId : null),
    capability_id: clean(event.capability_id),
    approval_id: clean(event.approval_id),
    plan_digest: clean(event.plan_digest),
    effect_id: clean(event.effect_id),
    receipt_id: clean(event.receipt_id),
    payload_ref: clean(event.payload_ref),
    payload_digest: clean(event.payload_digest),
    traceparent: clean(event.trace?.traceparent ?? null),
  };
  const row = { ...fields, summary };
  const digests = toDigests(row);
  return { ...row, digest_version: digestVersion, content_digest: digests.content, row_digest: digests.row };
}

/** Postgres text holds no NUL; the mark in its place shows that there was one. */
function clean<T extends string | null>(text: T): T {
  return text !== null && text.includes("\u0000") ? (text.replaceAll("\u0000", "\uFFFD") as T) : text;
}

/** A summary as jsonb keeps it: whole numbers that a double cannot hold become text, bytes become base64. */
function toJson(value: unknown): JsonValue {
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case "string":
      return clean(value);
    case "bigint":
      return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
        ? Number(value)
        : value.toString();
    case "boolean":
    case "number":
      return value;
    case "object":
      break;
    default:
      throw new TypeError(`an event holds no ${typeof value}`);
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(toJson);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [clean(name), toJson(one)]));
}
