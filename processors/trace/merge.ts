import type { AttributeValue, Attributes, ClientTrace, SpanState } from "./words.ts";

/** Links of one span: a client that names another span with each call would otherwise fill the row. */
const maxLinks = 8;
/** Attributes of one span. */
const maxAttributes = 40;

/**
 * Puts together what two events told of one span. Commutative, associative, idempotent: arrival order does not matter.
 * INVARIANT: processors/trace/merge.test.ts "gives one state, whatever the order, however often".
 */
export function mergeSpans(one: SpanState, other: SpanState): SpanState {
  const parent = higher(one, other, "parentRank", (a, b) => less(a.parentId ?? "", b.parentId ?? ""));
  const start = higher(one, other, "startRank", (a, b) => (a.startedAt ?? 0) < (b.startedAt ?? 0));
  const end = higher(one, other, "endRank", (a, b) => (a.endedAt ?? 0) > (b.endedAt ?? 0));
  const status = higher(one, other, "statusRank", (a, b) =>
    a.status === b.status ? less(a.errorType ?? "", b.errorType ?? "") : less(a.status, b.status),
  );
  return {
    spanId: one.spanId,
    topic: one.topic,
    identity: one.identity,
    parentId: parent.parentId,
    parentRank: parent.parentRank,
    isReal: one.isReal || other.isReal,
    causeEvent: leastOf(one.causeEvent, other.causeEvent),
    startRank: start.startRank,
    startedAt: start.startedAt,
    endRank: end.endRank,
    endedAt: end.endedAt,
    holdsUntil: one.holdsUntil === null ? other.holdsUntil : Math.max(one.holdsUntil, other.holdsUntil ?? 0),
    statusRank: status.statusRank,
    status: status.status,
    errorType: status.errorType,
    attributes: mergeAttributes(one.attributes, other.attributes),
    links: firstOf([...one.links, ...other.links], maxLinks),
  };
}

/** Where both tell the same attribute differently, the greater value is kept: any rule would do, as long as it is one. */
export function mergeAttributes(one: Attributes, other: Attributes): Attributes {
  const merged: Record<string, AttributeValue> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const known = merged[name];
    merged[name] = known === undefined || isGreater(value, known) ? value : known;
  }
  return Object.fromEntries(
    firstOf(Object.keys(merged), maxAttributes).map((name) => [name, merged[name] as AttributeValue]),
  );
}

/** The trace that the earliest event names. */
export function mergeClients(one: ClientTrace | null, other: ClientTrace | null): ClientTrace | null {
  if (one === null || other === null) return one ?? other;
  if (one.at !== other.at) return one.at < other.at ? one : other;
  return one.eventId <= other.eventId ? one : other;
}

/** Whether two states are the same, so that nothing has to be written. */
export function isSameSpan(one: SpanState, other: SpanState): boolean {
  return toComparable(one) === toComparable(other);
}

function toComparable(state: SpanState): string {
  const attributes = Object.entries(state.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
  const { links, ...rest } = state;
  return JSON.stringify([
    Object.entries({ ...rest, attributes }).sort(([a], [b]) => (a < b ? -1 : 1)),
    links,
  ]);
}

type Ranked = "parentRank" | "startRank" | "endRank" | "statusRank";

function higher(
  one: SpanState,
  other: SpanState,
  rank: Ranked,
  isBetter: (a: SpanState, b: SpanState) => boolean,
): SpanState {
  if (one[rank] !== other[rank]) return one[rank] > other[rank] ? one : other;
  return isBetter(other, one) ? other : one;
}

function isGreater(one: AttributeValue, other: AttributeValue): boolean {
  if (typeof one === "number" && typeof other === "number") return one > other;
  return less(JSON.stringify(other), JSON.stringify(one));
}

function less(one: string, other: string): boolean {
  return one < other;
}

function leastOf(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one <= other ? one : other;
}

function firstOf(texts: readonly string[], max: number): readonly string[] {
  return [...new Set(texts)].sort().slice(0, max);
}
