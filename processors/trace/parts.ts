import type { Source } from "../kit/processor.ts";
import { callOf, runOf } from "./call-parts.ts";
import { own } from "./conventions.ts";
import { toAgent, toModel, toSession, toTurn } from "./conversation-parts.ts";
import { toApproval, toCapability, toDecision } from "./decision-parts.ts";
import { toEffect } from "./effect-parts.ts";
import { parseTraceparent } from "./ids.ts";
import {
  compact,
  ends,
  hang,
  point,
  pointOf,
  startedBefore,
  statusOf,
  statuses,
  under,
  uuidOf,
} from "./part-fields.ts";
import type { Parts } from "./part-fields.ts";
import type { PartMaker } from "./place.ts";
import { partMaker, toPlace, toStorable } from "./place.ts";
import type { TracedEvent } from "./traced-events.ts";
import type { DeliveryRow, TraceChange } from "./words.ts";

/** One event as parts of spans. */
export function toTraceChange(event: TracedEvent, source: Source): TraceChange {
  const make = partMaker(event);
  const { own: ownParts, cause = null, isDelivered = false } = toParts(event, make);
  const client = event.trace === null ? null : parseTraceparent(event.trace.traceparent);
  const traceparent = client === null ? null : `00-${client.traceId}-${client.spanId}-01`;
  const [first, ...rest] = ownParts;
  const spans =
    first === undefined || traceparent === null ? ownParts : [{ ...first, links: [traceparent] }, ...rest];
  const eventId = uuidOf(event.event_id);
  return {
    tenantId: toStorable(event.tenant_id),
    correlationId: toStorable(event.correlation_id),
    eventId,
    at: event.recorded_at,
    client: traceparent === null ? null : { at: event.recorded_at, eventId, traceparent },
    attributes: compact({ [own.environment]: event.environment }),
    spans,
    cause: cause === null ? null : { ...cause, eventId, at: event.recorded_at },
    delivery: isDelivered && first !== undefined ? toDelivery(event, first.spanId, source) : null,
  };
}

function toParts(event: TracedEvent, make: PartMaker): Parts {
  const at = event.recorded_at;
  const place = toPlace(event, make);
  const session = event.execution.session_id ?? "";
  switch (event.type) {
    case "agent.session.started":
    case "agent.session.ended":
      return toSession(event, make);
    case "agent.session.compacted":
      return pointOf(make.part("compaction", [event.event_id], point(event, place)), place);
    case "agent.turn.started":
    case "agent.turn.completed":
    case "agent.prompt.submitted":
      return toTurn(event, make);
    case "agent.subagent.started":
    case "agent.subagent.stopped":
      return toAgent(event, make, session);
    case "agent.model.completed":
      return toModel(event, make, place);
    case "agent.tool.requested":
    case "agent.permission.requested": {
      const call = callOf(event, make, place, { startRank: 2, startedAt: at });
      return {
        own: [{ ...call, isReal: true }, ...place.containers],
        cause: { spanId: call.spanId, topic: "call" },
      };
    }
    case "agent.tool.completed": {
      const { outcome, duration_ms: durationMs } = event.redacted_summary;
      const call = callOf(event, make, place, {
        ...startedBefore(at, durationMs),
        endRank: ends.surer,
        endedAt: at,
        ...statusOf(outcome, "tool_failed"),
      });
      const run = runOf(event, make, call);
      return { own: [{ ...call, isReal: true }, ...(run === null ? [] : [run]), ...place.containers] };
    }
    case "agent.permission.refused": {
      const call = callOf(event, make, place, { endRank: ends.provisional, endedAt: at });
      const refused = {
        ...call.attributes,
        [own.outcome]: `refused_by_${event.redacted_summary.refused_by}`,
      };
      return { own: [{ ...call, isReal: true, attributes: refused }, ...place.containers] };
    }
    case "agent.tool.authorized":
    case "agent.tool.denied":
    case "agent.tool.deferred":
      return toDecision(event, make, place);
    case "agent.approval.requested":
    case "agent.approval.granted":
    case "agent.approval.refused":
    case "agent.approval.expired":
    case "agent.approval.voided":
    case "agent.approval.consumed":
      return toApproval(event, make, place);
    case "agent.capability.issued":
    case "agent.capability.spent":
    case "agent.capability.revoked":
    case "agent.capability.expired":
      return toCapability(event, make, place);
    case "agent.effect.attempted":
    case "agent.effect.receipted":
    case "agent.effect.unresolved":
    case "agent.effect.reconciled":
      return toEffect(event, make, place);
    case "agent.effect.ungated": {
      const call = callOf(event, make, place, {});
      const part = make.part("ungated", [event.event_id], {
        ...point(event, under(call)),
        statusRank: statuses.failed,
        status: "error",
        errorType: "ungated_effect",
      });
      return { own: [part, call, ...place.containers] };
    }
    case "agent.plan.diverged": {
      const decision = make.part("decision", [event.redacted_summary.decision_id], hang(place));
      const part = make.part("divergence", [event.event_id], {
        ...point(event, under(decision)),
        statusRank: statuses.failed,
        status: "error",
        errorType: "plan_diverged",
      });
      return { own: [part, decision, ...place.containers] };
    }
  }
}

function toDelivery(event: TracedEvent, spanId: string, source: Source): DeliveryRow {
  return {
    eventId: uuidOf(event.event_id),
    eventType: event.type,
    spanId,
    destination: source.topic,
    partition: source.partition,
    offset: source.offset,
    recordedAt: event.recorded_at,
    publishedAt: source.timestampMs ?? null,
    receivedAt: source.receivedMs ?? null,
  };
}
