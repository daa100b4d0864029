import { createHash } from "node:crypto";

/** A span's identity within its correlation: what it is, and the ids that make it unique. */
export type Identity = readonly [string, ...string[]];

/** 16 hex digits from tenant, correlation and identity: the same span has the same id wherever and whenever it is made. */
export function toSpanId(tenantId: string, correlationId: string, identity: string): string {
  return digest("span", tenantId, correlationId, identity).slice(0, 16);
}

/** 32 hex digits for a correlation whose client gave no trace of its own. */
export function toTraceId(tenantId: string, correlationId: string): string {
  return digest("trace", tenantId, correlationId).slice(0, 32);
}

/** The id of the span that stands for the whole correlation. */
export function toRootId(tenantId: string, correlationId: string): string {
  return toSpanId(tenantId, correlationId, '["goal"]');
}

/** A W3C traceparent in parts; null when it is none, or when it is all zeros. */
export function parseTraceparent(text: string): { readonly traceId: string; readonly spanId: string } | null {
  const found = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/.exec(text);
  const traceId = found?.[1];
  const spanId = found?.[2];
  if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId))
    return null;
  return { traceId, spanId };
}

function digest(...parts: readonly string[]): string {
  const hex = createHash("sha256").update(parts.join("\u0000")).digest("hex");
  // An id of zeros means none.
  return hex.startsWith("0000000000000000") ? `1${hex.slice(1)}` : hex;
}
