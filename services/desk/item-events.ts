import type { Draft, Envelope } from "../../schemas/envelope.ts";
import { toEnvelope } from "../../schemas/envelope.ts";
import type { ItemRow } from "./item-row.ts";

/** Id, time and place of an event, handed in. */
export interface EventPlace {
  readonly eventId: string;
  readonly nowMs: number;
  readonly environment: string;
}

/** What the desk calls itself in events. */
export const deskRuntime = {
  kind: "fabric",
  adapter_version: "desk",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};

/** A deed on an item: it belongs to the goal of the event that opened it, and that event is its cause. */
export function toItemFact(
  one: Draft,
  item: Pick<ItemRow, "tenantId" | "correlationId" | "firstEventId">,
  place: EventPlace,
  who: { readonly userId: string | null; readonly origin: "human" | "schedule" },
): Envelope {
  return toEnvelope(one, {
    eventId: place.eventId,
    recordedAtMs: place.nowMs,
    tenantId: item.tenantId,
    environment: place.environment,
    runtime: deskRuntime,
    correlationId: item.correlationId,
    causationId: `evt_${item.firstEventId}`,
    origin: who.origin,
    userId: who.userId,
  });
}
