import type { Attributes as OtelAttributes, HrTime, Link, SpanContext } from "@opentelemetry/api";
import { SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import type { TraceSpan } from "../../../processors/trace/queries.ts";
import { conventionsVersion, parseTraceparent, semantic } from "../../../processors/trace/queries.ts";

/** A span with the trace that it is sent in. */
export interface OutgoingSpan {
  readonly tenantId: string;
  readonly correlationId: string;
  readonly traceId: string;
  /** The client's span above the root; null when there is none. */
  readonly clientSpanId: string | null;
  readonly span: TraceSpan;
  readonly fingerprint: string;
}

const kinds = {
  internal: SpanKind.INTERNAL,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;
const statuses = {
  unset: SpanStatusCode.UNSET,
  ok: SpanStatusCode.OK,
  error: SpanStatusCode.ERROR,
} as const;

const scope = {
  name: "policy-hook-fabric",
  schemaUrl: `https://opentelemetry.io/schemas/${conventionsVersion}`,
};

/** Our clock has milliseconds. What began and ended in one is no span of no length: Jaeger takes those for faults. */
const shortestMs = 0.001;

/** The span as the SDK's exporters take it. */
export function toReadableSpan(
  { traceId, clientSpanId, span }: OutgoingSpan,
  resource: Resource,
): ReadableSpan {
  const context: SpanContext = { traceId, spanId: span.spanId, traceFlags: TraceFlags.SAMPLED };
  const parentId = span.parentId ?? clientSpanId;
  const lengthMs = Math.max(span.endMs - span.startMs, shortestMs);
  return {
    name: span.name,
    kind: kinds[span.kind],
    spanContext: () => context,
    ...(parentId === null
      ? {}
      : {
          parentSpanContext: {
            traceId,
            spanId: parentId,
            traceFlags: TraceFlags.SAMPLED,
            isRemote: span.parentId === null,
          },
        }),
    startTime: toHrTime(span.startMs),
    endTime: toHrTime(span.startMs + lengthMs),
    duration: toHrTime(lengthMs),
    status: {
      code: statuses[span.status],
      ...(span.errorType === null || span.status !== "error" ? {} : { message: span.errorType }),
    },
    attributes: {
      ...toAttributes(span.attributes),
      ...(span.errorType === null || span.status !== "error"
        ? {}
        : { [semantic.ATTR_ERROR_TYPE]: span.errorType }),
    },
    // A link to its own parent makes Jaeger forget that it is the parent.
    links: span.links
      .flatMap(toLink)
      .filter(({ context: to }) => to.traceId !== traceId || to.spanId !== parentId),
    events: [],
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function toLink(traceparent: string): Link[] {
  const found = parseTraceparent(traceparent);
  return found === null ? [] : [{ context: { ...found, traceFlags: TraceFlags.SAMPLED, isRemote: true } }];
}

function toAttributes(attributes: TraceSpan["attributes"]): OtelAttributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, typeof value === "object" ? [...value] : value]),
  );
}

function toHrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  // Whole microseconds: below them a double of today's milliseconds is noise.
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000) * 1_000];
}
