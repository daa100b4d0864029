import type { Envelope } from "../../schemas/envelope.ts";
import { toSpanId } from "./ids.ts";
import type { Identity } from "./ids.ts";
import type { SpanState, SpanTopic } from "./words.ts";

/** How sure an event is of a parent: the more specific, the surer. */
export const parentRanks = { root: 1, session: 2, turn: 3, agent: 4, right: 5, known: 6 } as const;

/** Where the spans of an event hang: the closest container that it names, and stand-ins for all above it. */
export interface Place {
  readonly parentId: string | null;
  readonly parentRank: number;
  /** Parts of the containers: they are there as soon as anything names them, so that no child is ever alone. */
  readonly containers: readonly SpanState[];
}

export type SpanFields = Partial<Omit<SpanState, "spanId" | "topic" | "identity">>;

/** Makes parts of the spans of one event's correlation. */
export interface PartMaker {
  idOf(topic: SpanTopic, ...ids: readonly string[]): string;
  part(topic: SpanTopic, ids: readonly string[], fields: SpanFields): SpanState;
}

export function partMaker({
  tenant_id,
  correlation_id,
}: Pick<Envelope, "tenant_id" | "correlation_id">): PartMaker {
  const tenantId = toStorable(tenant_id);
  const correlationId = toStorable(correlation_id);
  const identityOf = (topic: SpanTopic, ids: readonly string[]): string =>
    JSON.stringify([topic, ...ids] satisfies Identity);
  return {
    idOf: (topic, ...ids) => toSpanId(tenantId, correlationId, identityOf(topic, ids)),
    part(topic, ids, fields) {
      const identity = identityOf(topic, ids);
      return { ...unknown, ...fields, topic, identity, spanId: toSpanId(tenantId, correlationId, identity) };
    },
  };
}

const unknown: Omit<SpanState, "spanId" | "topic" | "identity"> = {
  parentId: null,
  parentRank: parentRanks.root,
  isReal: false,
  causeEvent: null,
  startRank: 0,
  startedAt: null,
  endRank: 0,
  endedAt: null,
  holdsUntil: null,
  statusRank: 0,
  status: "unset",
  errorType: null,
  attributes: {},
  links: [],
};

/** Session, turn and agent that an event names; `agentId` leaves out the agent that the event itself is about. */
export function toPlace(event: Envelope, make: PartMaker, agentId = event.actor.agent_id): Place {
  const { session_id: sessionId, turn_id: turnId } = event.execution;
  if (sessionId === null) return { parentId: null, parentRank: parentRanks.root, containers: [] };
  const session = make.part("session", [sessionId], {});
  if (agentId !== null) {
    // The turn that such an event names may be the child's own: it says nothing of where the child hangs.
    const agent = make.part("agent", [sessionId, agentId], {
      parentId: session.spanId,
      parentRank: parentRanks.session,
    });
    return { parentId: agent.spanId, parentRank: parentRanks.agent, containers: [session, agent] };
  }
  if (turnId !== null) {
    const turn = make.part("turn", [sessionId, turnId], {
      parentId: session.spanId,
      parentRank: parentRanks.session,
    });
    return { parentId: turn.spanId, parentRank: parentRanks.turn, containers: [session, turn] };
  }
  return { parentId: session.spanId, parentRank: parentRanks.session, containers: [session] };
}

/** Text as Postgres keeps it: no NUL, no half of a surrogate pair. */
export function toStorable(text: string): string {
  return Buffer.from(text.replaceAll("\u0000", "\uFFFD")).toString();
}
