import type { EventType } from "../../schemas/catalog.ts";
import type { Draft, Envelope } from "../../schemas/envelope.ts";

/** The part of a triggering event that what it causes inherits. */
export type Cause = Pick<
  Envelope,
  | "event_id"
  | "tenant_id"
  | "environment"
  | "correlation_id"
  | "hop_count"
  | "automation_depth"
  | "actor"
  | "execution"
  | "trace"
>;

/** What a processor asks the host to publish, in the transaction of its projection. */
export interface Emission<E extends EventType = EventType> {
  /**
   * Names the emission within its processor and type: the event id is derived from it, so that the same emission made
   * twice is one event.
   */
  readonly dedupeKey: string;
  readonly draft: Draft<E>;
  readonly cause: Cause;
}

/** Picks from an event what an emission inherits. */
export function toCause(event: Envelope): Cause {
  const { event_id, tenant_id, environment, correlation_id, hop_count, automation_depth } = event;
  const { actor, execution, trace } = event;
  return {
    event_id,
    tenant_id,
    environment,
    correlation_id,
    hop_count,
    automation_depth,
    actor,
    execution,
    trace,
  };
}
