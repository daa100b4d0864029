import { createHash } from "node:crypto";
import type { TraceSpan, TraceTree } from "../../../processors/trace/queries.ts";
import type { OutgoingSpan } from "./readable-span.ts";

/** What was sent of a span before. */
export interface SentSpan {
  readonly spanId: string;
  readonly fingerprint: string;
  readonly isLate: boolean;
}

/** When to look at a trace, by the database's clock. Milliseconds. */
export interface Look {
  readonly nowMs: number;
  /** When the last event of it came. */
  readonly arrivedMs: number;
  /** How long it has to be quiet before what is open is sent as it is. */
  readonly holdMs: number;
  /** Ids that its first spans went out under; null when nothing has. */
  readonly frozen: { readonly traceId: string; readonly clientSpanId: string | null } | null;
}

/** What there is to do about one trace. */
export interface Ready {
  readonly outgoing: readonly OutgoingSpan[];
  /** Spans that were sent and of which more is known since: they are not sent again under the same id. */
  readonly late: readonly string[];
  /** When to look again without anything new; null when all is out. */
  readonly lookAtMs: number | null;
}

/**
 * Picks what can be sent: spans that are complete, and all of them once the trace is quiet. What was sent is never sent
 * again under its id: a stand-in that went out stays a stand-in there, and the tables have the truth.
 */
export function toReady(tree: TraceTree, sent: ReadonlyMap<string, SentSpan>, look: Look): Ready {
  const quietFromMs = look.arrivedMs + look.holdMs;
  // Somebody waits for a deadline: a person may take an hour, and the spans above wait with the approval.
  const openUntilMs =
    tree.holdsUntilMs === null ? quietFromMs : Math.max(quietFromMs, tree.holdsUntilMs + look.holdMs);
  const isQuiet = look.nowMs >= openUntilMs;
  const { traceId, clientSpanId } = look.frozen ?? tree;
  const outgoing: OutgoingSpan[] = [];
  const late: string[] = [];
  let waiting = 0;
  for (const span of tree.spans) {
    const before = sent.get(span.spanId);
    if (before !== undefined) {
      if (!before.isLate && before.fingerprint !== toFingerprint(span)) late.push(span.spanId);
    } else if (isQuiet || span.isComplete) {
      const { tenantId, correlationId } = tree;
      outgoing.push({
        tenantId,
        correlationId,
        traceId,
        clientSpanId,
        span,
        fingerprint: toFingerprint(span),
      });
    } else waiting += 1;
  }
  return { outgoing, late, lookAtMs: waiting === 0 ? null : Math.ceil(openUntilMs) };
}

/** Whether two sendings of a span would differ. */
function toFingerprint(span: TraceSpan): string {
  const { parentId, name, startMs, endMs, status, errorType, isSynthetic } = span;
  return createHash("sha256")
    .update(JSON.stringify([parentId, name, startMs, endMs, status, errorType, isSynthetic]))
    .digest("hex")
    .slice(0, 12);
}
