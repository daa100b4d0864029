import type { Envelope } from "../../schemas/envelope.ts";
import { own, semantic } from "./conventions.ts";
import { compact, ends, hang, startedBefore, statusOf, under, uuidOf } from "./part-fields.ts";
import type { PartMaker, Place, SpanFields } from "./place.ts";
import type { TracedEvent } from "./traced-events.ts";
import type { SpanState } from "./words.ts";

/**
 * What the runner did, between the decision and the result: the call waits for the gate and for people, the run does not.
 * By the runtime's stopwatch; without it, from the call's last decision before the result (assemble.ts). Null: it did not run.
 */
export function runOf(
  event: Envelope<"agent.tool.completed">,
  make: PartMaker,
  call: SpanState,
): SpanState | null {
  const { outcome, duration_ms: durationMs } = event.redacted_summary;
  if (outcome === "blocked") return null;
  return make.part("run", callIds(event), {
    ...hang(under(call)),
    isReal: true,
    ...startedBefore(event.recorded_at, durationMs),
    endRank: ends.final,
    endedAt: event.recorded_at,
    ...statusOf(outcome, "tool_failed"),
    attributes: compact({
      [semantic.ATTR_GEN_AI_TOOL_NAME]: event.subject?.tool,
      [own.runtime]: event.runtime.kind,
      [own.outcome]: outcome,
    }),
  });
}

const isIntent = (event: TracedEvent): boolean =>
  event.type === "agent.tool.requested" || event.type === "agent.permission.requested";

/** What a call is named by: the runtime's id, or the event of its intent. */
function callIds(event: TracedEvent): readonly string[] {
  const { session_id: sessionId, tool_call_id: callId } = event.execution;
  return callId !== null
    ? [sessionId ?? "", callId]
    : [uuidOf((isIntent(event) ? null : event.causation_id) ?? event.event_id)];
}

/** The span of the call that an event is about; without the runtime's id it is named by its intent's event. */
export function callOf(event: TracedEvent, make: PartMaker, place: Place, fields: SpanFields): SpanState {
  const { tool_call_id: callId } = event.execution;
  const outcome = event.type === "agent.tool.completed" ? event.redacted_summary.outcome : null;
  const isAbout = isIntent(event) || event.type === "agent.tool.completed";
  return make.part("call", callIds(event), {
    ...hang(place),
    ...fields,
    attributes: compact({
      [semantic.ATTR_GEN_AI_OPERATION_NAME]: semantic.GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL,
      [semantic.ATTR_GEN_AI_TOOL_NAME]: event.subject?.tool,
      [semantic.ATTR_GEN_AI_TOOL_CALL_ID]: callId,
      [own.action]: event.subject?.action,
      [own.runtime]: isAbout ? event.runtime.kind : null,
      [own.effectClass]:
        event.type === "agent.tool.requested" || event.type === "agent.permission.requested"
          ? event.redacted_summary.effect_class
          : null,
      [own.outcome]: outcome,
    }),
  });
}
