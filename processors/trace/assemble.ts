import { own } from "./conventions.ts";
import { toDeliverySpans } from "./delivery-spans.ts";
import { parseTraceparent, toRootId, toTraceId } from "./ids.ts";
import { toSpanName } from "./names.ts";
import type { StoredTrace, TraceSpan, TraceTree } from "./tree.ts";
import type { CauseRow, SpanState } from "./words.ts";
import { depthOf } from "./words.ts";

/**
 * Puts a correlation's rows together as one tree. Whatever is missing, there is one root, no orphan and no cycle.
 * INVARIANT: processors/trace/assemble.test.ts "makes one tree of any rows".
 */
export function assembleTrace(stored: StoredTrace): TraceTree {
  const rootId = toRootId(stored.tenantId, stored.correlationId);
  const causes = new Map(stored.causes.map((one) => [one.eventId, one]));
  const byId = new Map(stored.spans.map((one) => [one.spanId, one]));
  const parents = toParents(stored.spans, byId, causes, rootId);
  const ordered = inTreeOrder(stored.spans, parents, rootId);
  const extents = toExtents(ordered, parents, causes, rootId, stored);
  const client = stored.clientTraceparent === null ? null : parseTraceparent(stored.clientTraceparent);

  const started = new Map<string, number>([[rootId, extents.get(rootId)?.startMs ?? stored.firstAt]]);
  const spans = ordered.map((state): TraceSpan => {
    const parentId = parents.get(state.spanId) ?? rootId;
    const known = extents.get(state.spanId) ?? { startMs: stored.firstAt, endMs: stored.firstAt };
    const floor = started.get(parentId) ?? known.startMs;
    const startMs = Math.max(known.startMs, floor);
    started.set(state.spanId, startMs);
    const isLost = state.parentId !== null && !byId.has(state.parentId);
    const isOpen = state.isReal && state.endRank === 0;
    return {
      spanId: state.spanId,
      parentId,
      topic: state.topic,
      kind: state.topic === "model" || state.topic === "effect" ? "client" : "internal",
      name: toSpanName(state.topic, state.attributes),
      startMs,
      endMs: Math.max(known.endMs, startMs),
      status: state.status,
      errorType: state.errorType,
      attributes: {
        ...state.attributes,
        ...(state.isReal ? {} : { [own.synthetic]: true }),
        ...(isOpen ? { [own.open]: true } : {}),
        ...(startMs > known.startMs ? { [own.clampedMs]: startMs - known.startMs } : {}),
        ...(isLost ? { [own.adopted]: true } : {}),
      },
      links: state.links.filter((one) => one !== stored.clientTraceparent),
      isSynthetic: !state.isReal,
      isComplete:
        state.isReal &&
        state.startRank > 0 &&
        state.endRank >= finalRank &&
        !isLost &&
        (state.causeEvent === null || causes.has(state.causeEvent)),
    };
  });
  const held = stored.spans.flatMap((one) =>
    one.endRank < finalRank && one.holdsUntil !== null ? [one.holdsUntil] : [],
  );
  const rootExtent = extents.get(rootId);
  const root: TraceSpan = {
    spanId: rootId,
    parentId: null,
    topic: "goal",
    kind: "internal",
    name: "goal",
    startMs: rootExtent?.startMs ?? stored.firstAt,
    endMs: Math.max(rootExtent?.endMs ?? stored.lastAt, stored.lastAt),
    status: "unset",
    errorType: null,
    attributes: {
      ...stored.attributes,
      [own.correlation]: stored.correlationId,
      [own.tenant]: stored.tenantId,
      [own.events]: Number(stored.events),
      ...(stored.isTruncated ? { [own.truncated]: true } : {}),
    },
    links: stored.clientTraceparent === null ? [] : [stored.clientTraceparent],
    isSynthetic: false,
    // A goal has no end of its own: it is over when its trace is quiet.
    isComplete: false,
  };
  return {
    tenantId: stored.tenantId,
    correlationId: stored.correlationId,
    traceId: client?.traceId ?? toTraceId(stored.tenantId, stored.correlationId),
    clientSpanId: client?.spanId ?? null,
    holdsUntilMs: held.length === 0 ? null : Math.max(...held),
    spans: [root, ...spans, ...stored.deliveries.flatMap((one) => toDeliverySpans(stored, one, started))],
  };
}

/** Ends of this rank are told by an event that ends the span for good. */
const finalRank = 2;

type Causes = ReadonlyMap<string, Pick<CauseRow, "spanId" | "at">>;

/**
 * Parent of each span: the one that its rows name, or the span of its cause when that is closer. One that is not there,
 * or that hangs on the span itself, gives way to the root.
 */
function toParents(
  spans: readonly SpanState[],
  byId: ReadonlyMap<string, SpanState>,
  causes: Causes,
  rootId: string,
): ReadonlyMap<string, string> {
  const parents = new Map<string, string>();
  // By id, so that which link of a cycle is cut does not hang on the order of the rows.
  for (const span of [...spans].sort((a, b) => (a.spanId < b.spanId ? -1 : 1))) {
    const named = span.parentId === null ? undefined : byId.get(span.parentId);
    const cause = span.causeEvent === null ? undefined : byId.get(causes.get(span.causeEvent)?.spanId ?? "");
    const isCloser =
      cause !== undefined && (named === undefined || depthOf[cause.topic] > depthOf[named.topic]);
    const candidates = [isCloser ? cause : undefined, named];
    const found = candidates.find((one) => one !== undefined && !leadsTo(one.spanId, span.spanId, parents));
    parents.set(span.spanId, found?.spanId ?? rootId);
  }
  return parents;
}

function leadsTo(from: string, to: string, parents: ReadonlyMap<string, string>): boolean {
  for (let at: string | undefined = from; at !== undefined; at = parents.get(at)) if (at === to) return true;
  return false;
}

/** Parents before children, siblings by start and id. */
function inTreeOrder(
  spans: readonly SpanState[],
  parents: ReadonlyMap<string, string>,
  rootId: string,
): readonly SpanState[] {
  const children = new Map<string, SpanState[]>();
  for (const span of spans) {
    const parent = parents.get(span.spanId) ?? rootId;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [span]);
    else siblings.push(span);
  }
  const ordered: SpanState[] = [];
  let level = children.get(rootId) ?? [];
  while (level.length > 0) {
    level.sort((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0) || (a.spanId < b.spanId ? -1 : 1));
    ordered.push(...level);
    level = level.flatMap((one) => children.get(one.spanId) ?? []);
  }
  return ordered;
}

interface Extent {
  readonly startMs: number;
  readonly endMs: number;
}

/** From the leaves up: what is not known of a span is taken from what it holds. */
function toExtents(
  ordered: readonly SpanState[],
  parents: ReadonlyMap<string, string>,
  causes: Causes,
  rootId: string,
  stored: StoredTrace,
): ReadonlyMap<string, Extent> {
  const inner = new Map<string, Extent>();
  const extents = new Map<string, Extent>();
  const decided = toDecidedAt(ordered, parents);
  for (const span of [...ordered].reverse()) {
    const within = inner.get(span.spanId);
    const intent =
      span.topic === "decision" && span.causeEvent !== null ? causes.get(span.causeEvent)?.at : undefined;
    const told = intent === undefined ? span.startedAt : Math.min(intent, span.startedAt ?? intent);
    const startMs = told ?? decided(span) ?? within?.startMs ?? span.endedAt ?? stored.firstAt;
    const endMs =
      span.endRank >= finalRank && span.endedAt !== null
        ? span.endedAt
        : Math.max(span.endedAt ?? startMs, within?.endMs ?? startMs);
    const extent = { startMs, endMs: Math.max(startMs, endMs) };
    extents.set(span.spanId, extent);
    widen(inner, parents.get(span.spanId) ?? rootId, extent);
  }
  const whole = inner.get(rootId);
  extents.set(rootId, {
    startMs: Math.min(stored.firstAt, whole?.startMs ?? stored.firstAt),
    endMs: Math.max(stored.lastAt, whole?.endMs ?? stored.lastAt),
  });
  return extents;
}

/** When a run may have begun of which no stopwatch tells: with the call's last decision before its end. */
function toDecidedAt(
  spans: readonly SpanState[],
  parents: ReadonlyMap<string, string>,
): (run: SpanState) => number | undefined {
  const byCall = new Map<string, number[]>();
  for (const { topic, spanId, endedAt } of spans) {
    const call = parents.get(spanId);
    if (topic !== "decision" || endedAt === null || call === undefined) continue;
    byCall.set(call, [...(byCall.get(call) ?? []), endedAt]);
  }
  return ({ topic, spanId, endedAt }) => {
    if (topic !== "run") return undefined;
    const before = (byCall.get(parents.get(spanId) ?? "") ?? []).filter((at) => at <= (endedAt ?? at));
    return before.length === 0 ? undefined : Math.max(...before);
  };
}

function widen(inner: Map<string, Extent>, id: string, { startMs, endMs }: Extent): void {
  const known = inner.get(id);
  inner.set(id, {
    startMs: Math.min(known?.startMs ?? startMs, startMs),
    endMs: Math.max(known?.endMs ?? endMs, endMs),
  });
}
