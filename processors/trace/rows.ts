import type { Attributes, SpanState, SpanTopic, StatusWord } from "./words.ts";
import { depthOf } from "./words.ts";

/** A row of `spans` as Postgres gives it back. */
export interface SpanRow {
  readonly tenant_id: string;
  readonly correlation_id: string;
  readonly span_id: string;
  readonly topic: string;
  readonly identity: string;
  readonly parent_id: string | null;
  readonly parent_rank: number;
  readonly is_real: boolean;
  readonly cause_event: string | null;
  readonly start_rank: number;
  readonly started_at: Date | null;
  readonly end_rank: number;
  readonly ended_at: Date | null;
  readonly holds_until: Date | null;
  readonly status_rank: number;
  readonly status: string;
  readonly error_type: string | null;
  readonly attributes: Attributes;
  readonly links: readonly string[];
}

/** A row as the state that it keeps. */
export function fromSpanRow(row: SpanRow): SpanState {
  return {
    spanId: row.span_id,
    topic: row.topic as SpanTopic,
    identity: row.identity,
    parentId: row.parent_id,
    parentRank: row.parent_rank,
    isReal: row.is_real,
    causeEvent: row.cause_event,
    startRank: row.start_rank,
    startedAt: row.started_at?.getTime() ?? null,
    endRank: row.end_rank,
    endedAt: row.ended_at?.getTime() ?? null,
    holdsUntil: row.holds_until?.getTime() ?? null,
    statusRank: row.status_rank,
    status: row.status as StatusWord,
    errorType: row.error_type,
    attributes: row.attributes,
    links: row.links,
  };
}

/** A state as columns, for JSON. */
export function toSpanColumns(state: SpanState): Record<string, unknown> {
  return {
    span_id: state.spanId,
    topic: state.topic,
    depth: depthOf[state.topic],
    identity: state.identity,
    parent_id: state.parentId,
    parent_rank: state.parentRank,
    is_real: state.isReal,
    cause_event: state.causeEvent,
    start_rank: state.startRank,
    started_at: toTime(state.startedAt),
    end_rank: state.endRank,
    ended_at: toTime(state.endedAt),
    holds_until: toTime(state.holdsUntil),
    status_rank: state.statusRank,
    status: state.status,
    error_type: state.errorType,
    attributes: state.attributes,
    links: state.links,
  };
}

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
