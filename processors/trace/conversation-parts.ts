import type { Envelope } from "../../schemas/envelope.ts";
import { callOf } from "./call-parts.ts";
import { own, providerOf, semantic } from "./conventions.ts";
import {
  agentOperation,
  causeOf,
  compact,
  ends,
  hang,
  pointOf,
  startedBefore,
  statusOf,
  toNumber,
  under,
} from "./part-fields.ts";
import type { Optional, Parts } from "./part-fields.ts";
import type { PartMaker, Place, SpanFields } from "./place.ts";
import { toPlace } from "./place.ts";
import type { SpanState } from "./words.ts";

export function toSession(
  event: Envelope<"agent.session.started" | "agent.session.ended">,
  make: PartMaker,
): Parts {
  const sessionId = event.execution.session_id;
  if (sessionId === null) return { own: [] };
  const at = event.recorded_at;
  const isStart = event.type === "agent.session.started";
  const session = make.part("session", [sessionId], {
    isReal: true,
    causeEvent: isStart ? causeOf(event) : null,
    ...(isStart ? { startRank: 2, startedAt: at } : { endRank: ends.final, endedAt: at }),
    attributes: compact({
      ...agentOperation,
      [semantic.ATTR_GEN_AI_CONVERSATION_ID]: sessionId,
      [semantic.ATTR_GEN_AI_AGENT_NAME]: event.runtime.kind,
      [semantic.ATTR_GEN_AI_REQUEST_MODEL]: isStart ? event.redacted_summary.model : null,
      [own.trigger]: isStart ? event.redacted_summary.source : null,
      [own.user]: event.actor.user_id,
    }),
  });
  return {
    own: [session],
    ...(isStart ? { cause: { spanId: session.spanId, topic: "session" as const } } : {}),
  };
}

export function toTurn(
  event: Envelope<"agent.turn.started" | "agent.turn.completed" | "agent.prompt.submitted">,
  make: PartMaker,
): Parts {
  const { session_id: sessionId, turn_id: turnId } = event.execution;
  const at = event.recorded_at;
  const place = toPlace({ ...event, execution: { ...event.execution, turn_id: null } }, make, null);
  if (sessionId === null || turnId === null) return { own: place.containers };
  const attributes = { [semantic.ATTR_GEN_AI_CONVERSATION_ID]: sessionId, [own.turn]: turnId };
  const turn = (fields: SpanFields, more: Optional = {}): SpanState =>
    make.part("turn", [sessionId, turnId], {
      ...hang(place),
      isReal: true,
      ...fields,
      attributes: compact({ ...attributes, ...more }),
    });
  switch (event.type) {
    case "agent.prompt.submitted":
      return { own: [turn({ startRank: 1, startedAt: at }), ...place.containers] };
    case "agent.turn.started": {
      const part = turn({ startRank: 2, startedAt: at }, { [own.trigger]: event.redacted_summary.trigger });
      return { own: [part, ...place.containers], cause: { spanId: part.spanId, topic: "turn" } };
    }
    case "agent.turn.completed": {
      const { outcome, error_kind: errorKind } = event.redacted_summary;
      const status = statusOf(outcome, errorKind ?? "turn_failed");
      return {
        own: [
          turn({ endRank: ends.final, endedAt: at, ...status }, { [own.outcome]: outcome }),
          ...place.containers,
        ],
      };
    }
  }
}

export function toAgent(
  event: Envelope<"agent.subagent.started" | "agent.subagent.stopped">,
  make: PartMaker,
  session: string,
): Parts {
  const { subagent_id: agentId, subagent_kind: kind } = event.redacted_summary;
  const at = event.recorded_at;
  const by = event.actor.agent_id === agentId ? null : event.actor.agent_id;
  const place = toPlace(event, make, by);
  const isStart = event.type === "agent.subagent.started";
  const callId = event.execution.tool_call_id;
  const call = callId === null ? null : callOf(event, make, place, {});
  const agent = make.part("agent", [session, agentId], {
    ...hang(call === null ? place : under(call)),
    isReal: true,
    causeEvent: isStart ? causeOf(event) : null,
    ...(isStart ? { startRank: 2, startedAt: at } : { endRank: ends.final, endedAt: at }),
    ...(isStart ? {} : statusOf(event.redacted_summary.outcome, "agent_failed")),
    attributes: compact({
      ...agentOperation,
      [semantic.ATTR_GEN_AI_AGENT_ID]: agentId,
      [semantic.ATTR_GEN_AI_AGENT_NAME]: kind,
      [semantic.ATTR_GEN_AI_CONVERSATION_ID]: event.execution.session_id,
      [own.outcome]: isStart ? null : event.redacted_summary.outcome,
    }),
  });
  return {
    own: [agent, ...(call === null ? [] : [call]), ...place.containers],
    ...(isStart ? { cause: { spanId: agent.spanId, topic: "agent" as const } } : {}),
  };
}

/** Two reports of one model call are one span; one without an id of its own stands for itself. */
function modelCallOf({
  event_id: eventId,
  execution,
  redacted_summary: { model_call_id: callId },
}: Envelope<"agent.model.completed">): readonly string[] {
  return callId === null ? [eventId] : [execution.session_id ?? "", callId, String(execution.attempt)];
}

export function toModel(event: Envelope<"agent.model.completed">, make: PartMaker, place: Place): Parts {
  const at = event.recorded_at;
  const summary = event.redacted_summary;
  const start = startedBefore(at, summary.duration_ms);
  return pointOf(
    make.part("model", modelCallOf(event), {
      ...hang(place),
      isReal: true,
      startRank: 2,
      startedAt: start.startedAt ?? at,
      endRank: ends.final,
      endedAt: at,
      ...statusOf(summary.outcome, summary.error_kind ?? "model_failed"),
      attributes: compact({
        [semantic.ATTR_GEN_AI_OPERATION_NAME]: semantic.GEN_AI_OPERATION_NAME_VALUE_CHAT,
        [semantic.ATTR_GEN_AI_REQUEST_MODEL]: summary.model,
        [semantic.ATTR_GEN_AI_PROVIDER_NAME]: providerOf(summary.model),
        [semantic.ATTR_GEN_AI_CONVERSATION_ID]: event.execution.session_id,
        [semantic.ATTR_GEN_AI_USAGE_INPUT_TOKENS]: toNumber(summary.input_tokens),
        [semantic.ATTR_GEN_AI_USAGE_OUTPUT_TOKENS]: toNumber(summary.output_tokens),
        [semantic.ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS]: toNumber(summary.cached_input_tokens),
        [semantic.ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS]: toNumber(summary.cache_write_tokens),
        [semantic.ATTR_GEN_AI_USAGE_REASONING_OUTPUT_TOKENS]: toNumber(summary.reasoning_tokens),
        [own.costMicros]: toNumber(summary.cost_micros),
        [own.outcome]: summary.outcome,
      }),
    }),
    place,
  );
}
