import type { EpochMs } from "../../schemas/generated/types.ts";

/**
 * What a span is about. The number says how deep it may stand: a parent's is lower than its child's, so that a trace that
 * is cut at its cap loses leaves and never a parent of what it keeps.
 */
export const depthOf = {
  session: 0,
  turn: 1,
  agent: 2,
  call: 3,
  model: 4,
  compaction: 4,
  decision: 4,
  run: 4,
  capability: 4,
  ungated: 4,
  approval: 5,
  divergence: 5,
  spend: 5,
  revocation: 5,
  effect: 5,
  reconciliation: 6,
} as const;
export type SpanTopic = keyof typeof depthOf;

export type AttributeValue = string | number | boolean | readonly string[];
export type Attributes = Readonly<Record<string, AttributeValue>>;

export type StatusWord = "unset" | "ok" | "error";

/**
 * What is known of one span: the merge of what each of its events told. Every field has an order of its own, so that the
 * result is the same whatever came first. Times are UTC milliseconds.
 */
export interface SpanState {
  readonly spanId: string;
  readonly topic: SpanTopic;
  /** What the id is made from, as JSON. */
  readonly identity: string;
  /** Null: the root of the correlation. */
  readonly parentId: string | null;
  /** The more specific parent wins; then the lower id. */
  readonly parentRank: number;
  /** An event of its own came. */
  readonly isReal: boolean;
  /** Event that set this off, where its span may be a closer parent. */
  readonly causeEvent: string | null;
  /** 0 unknown, 1 derived or by a stand-in, 2 told by an event. The higher wins, then the earlier. */
  readonly startRank: number;
  readonly startedAt: EpochMs | null;
  /** 0 unknown, 1 provisional, 2 and above final. The higher wins, then the later. */
  readonly endRank: number;
  readonly endedAt: EpochMs | null;
  /** Something has a deadline here: the trace is not quiet before it. */
  readonly holdsUntil: EpochMs | null;
  readonly statusRank: number;
  readonly status: StatusWord;
  readonly errorType: string | null;
  readonly attributes: Attributes;
  /** Spans of a client that are not of this tree, as traceparents. */
  readonly links: readonly string[];
}

/** An event that others may name as their cause. */
export interface CauseRow {
  /** Without its prefix. */
  readonly eventId: string;
  readonly spanId: string;
  readonly topic: SpanTopic;
  readonly at: EpochMs;
}

/** The way of one decision's event from its commit to this projection. Not part of what a rebuild makes equal. */
export interface DeliveryRow {
  readonly eventId: string;
  readonly eventType: string;
  /** Span of the event. */
  readonly spanId: string;
  readonly destination: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly recordedAt: EpochMs;
  /** The record's timestamp: when the relay sent it. Null when the log did not tell. */
  readonly publishedAt: EpochMs | null;
  /** When the host took the record up. Null when it did not tell. */
  readonly receivedAt: EpochMs | null;
}

/** The client's own trace, as its first event named it. */
export interface ClientTrace {
  readonly at: EpochMs;
  readonly eventId: string;
  readonly traceparent: string;
}

/** What one event adds. */
export interface TraceChange {
  readonly tenantId: string;
  readonly correlationId: string;
  readonly eventId: string;
  readonly at: EpochMs;
  readonly client: ClientTrace | null;
  /** Of the root. */
  readonly attributes: Attributes;
  readonly spans: readonly SpanState[];
  readonly cause: CauseRow | null;
  readonly delivery: DeliveryRow | null;
}
