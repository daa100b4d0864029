import type { Attributes, CauseRow, SpanState, StatusWord } from "./words.ts";

/** A decision's event on its way over the bus. Times are UTC milliseconds. */
export interface Delivered {
  readonly eventId: string;
  readonly eventType: string;
  readonly spanId: string;
  readonly destination: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly recordedAt: number;
  readonly publishedAt: number | null;
  readonly receivedAt: number | null;
  readonly projectedAt: number;
  /** Messages of the batch that it was projected in. */
  readonly batchMessages: number;
  /** Producing spans of other messages of that batch, as traceparents. */
  readonly batchLinks: readonly string[];
}

/** Everything that is stored of one correlation. */
export interface StoredTrace {
  readonly tenantId: string;
  readonly correlationId: string;
  readonly events: bigint;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly clientTraceparent: string | null;
  readonly attributes: Attributes;
  readonly isTruncated: boolean;
  readonly spans: readonly SpanState[];
  readonly causes: readonly Pick<CauseRow, "eventId" | "spanId" | "at">[];
  readonly deliveries: readonly Delivered[];
}

/** The kinds of OpenTelemetry. */
export type SpanKind = "internal" | "client" | "producer" | "consumer";

/** One span as it is drawn and exported. Times are UTC milliseconds, the end is never before the start. */
export interface TraceSpan {
  readonly spanId: string;
  /** Null: the root. */
  readonly parentId: string | null;
  readonly topic: string;
  readonly kind: SpanKind;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly status: StatusWord;
  readonly errorType: string | null;
  readonly attributes: Attributes;
  readonly links: readonly string[];
  /** No event of its own came: it is there because others name it. */
  readonly isSynthetic: boolean;
  /** Both ends and the place in the tree are known for good. */
  readonly isComplete: boolean;
}

/** One tree: a root, and every other span's parent among the spans. */
export interface TraceTree {
  readonly tenantId: string;
  readonly correlationId: string;
  readonly traceId: string;
  /** Span of the client that the root hangs on. */
  readonly clientSpanId: string | null;
  /** A deadline that somebody waits for: until then quiet means nothing. Null when there is none. */
  readonly holdsUntilMs: number | null;
  /** The root first, then by depth: parents before children. */
  readonly spans: readonly TraceSpan[];
}
