import type { Outcome } from "../../schemas/generated/types.ts";
import { semantic } from "./conventions.ts";
import type { Place, SpanFields } from "./place.ts";
import { parentRanks, toStorable } from "./place.ts";
import type { TracedEvent } from "./traced-events.ts";
import type { AttributeValue, Attributes, CauseRow, SpanState } from "./words.ts";

/** Longest text of an attribute. */
const maxTextChars = 256;

/** Ranks of ends. A provisional one leaves the span open until its trace is quiet. */
export const ends = { none: 0, provisional: 1, final: 2, surer: 3 } as const;

/** Ranks of statuses: what was found out later outranks what was not known. */
export const statuses = { none: 0, unresolved: 1, told: 2, failed: 3, reconciled: 4 } as const;

export interface Parts {
  /** The event's own span first, then those that it merely names. */
  readonly own: readonly SpanState[];
  readonly cause?: Pick<CauseRow, "spanId" | "topic">;
  /** Its way over the bus is traced too. */
  readonly isDelivered?: boolean;
}

export const agentOperation = {
  [semantic.ATTR_GEN_AI_OPERATION_NAME]: semantic.GEN_AI_OPERATION_NAME_VALUE_INVOKE_AGENT,
};

export function hang({ parentId, parentRank }: Pick<Place, "parentId" | "parentRank">): SpanFields {
  return { parentId, parentRank };
}

export function under(parent: SpanState, parentRank: number = parentRanks.known): Place {
  return { parentId: parent.spanId, parentRank, containers: [] };
}

/** A span of no length. */
export function point(event: TracedEvent, place: Place): SpanFields {
  return {
    ...hang(place),
    isReal: true,
    startRank: 2,
    startedAt: event.recorded_at,
    endRank: ends.final,
    endedAt: event.recorded_at,
  };
}

export function pointOf(part: SpanState, place: Place): Parts {
  return { own: [part, ...place.containers] };
}

/** Denied is no fault of the system, and neither is what a person stopped. */
export function statusOf(outcome: Outcome, errorType: string): SpanFields {
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
export function startedBefore(at: number, durationMs: bigint | null): SpanFields {
  if (durationMs === null || durationMs < 0n || durationMs > BigInt(at)) return {};
  return { startRank: 1, startedAt: at - Number(durationMs) };
}

export function causeOf(event: TracedEvent): string | null {
  const cause = event.causation_id;
  return cause !== null && /^evt_[0-9a-f-]{36}$/.test(cause) ? uuidOf(cause) : null;
}

export function uuidOf(eventId: string): string {
  return toStorable(eventId.startsWith("evt_") ? eventId.slice("evt_".length) : eventId);
}

export type Optional = Readonly<Record<string, AttributeValue | null | undefined>>;

export function compact(values: Optional): Attributes {
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
export function toNumber(value: bigint | null): number | null {
  return value !== null && value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : null;
}
