import type { Draft, Envelope } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { BreakerScope } from "../../schemas/generated/types.ts";
import { derivedUuid } from "../platform/ids.ts";
import type { HoldRow } from "./hold-row.ts";
import { fabricTenant } from "./hold-row.ts";

/** Id, time and place of an event, handed in. */
export interface EventPlace {
  readonly eventId: string;
  readonly nowMs: number;
  readonly environment: string;
}

const incidentsRuntime = {
  kind: "fabric",
  adapter_version: "incidents",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};

/** The name of an incident for people. */
export function toIncidentId(holdId: string): string {
  return `inc_${holdId}`;
}

/** The name of a trip for people. */
export function toTripId(holdId: string): string {
  return `trp_${holdId}`;
}

/** `fabric.incident.declared`. */
export function toDeclaredEvent(hold: HoldRow, place: EventPlace): Envelope {
  const declared = draft("fabric.incident.declared", {
    incident_id: toIncidentId(hold.holdId),
    kind: hold.kind,
    scope: hold.scope,
    scope_id: hold.scopeId,
    reason: hold.reason,
    declared_by: hold.declaredBy,
  });
  return toFact(declared, hold, place, hold.declaredBy);
}

/** `fabric.incident.lifted`. */
export function toLiftedEvent(hold: HoldRow, by: string, reason: string, place: EventPlace): Envelope {
  const lifted = draft("fabric.incident.lifted", {
    incident_id: toIncidentId(hold.holdId),
    scope: hold.scope,
    scope_id: hold.scopeId,
    reason,
    lifted_by: by,
  });
  return toFact(lifted, hold, place, by);
}

/** `fabric.breaker.reset`; `by` null: its time was over. */
export function toResetEvent(hold: HoldRow, by: string | null, cause: string, place: EventPlace): Envelope {
  const reset = draft("fabric.breaker.reset", {
    scope: breakerScopes.has(hold.scope) ? (hold.scope as BreakerScope) : "unknown",
    scope_id: hold.scopeId,
    reset_by: by ?? "time",
    cause,
    trip_id: toTripId(hold.holdId),
  });
  return toFact(reset, hold, place, by);
}
const breakerScopes: ReadonlySet<string> = new Set(["correlation", "agent", "tenant", "all"]);

function toFact(one: Draft, hold: HoldRow, place: EventPlace, by: string | null): Envelope {
  return toEnvelope(one, {
    eventId: place.eventId,
    recordedAtMs: place.nowMs,
    tenantId: hold.tenantId ?? fabricTenant,
    environment: place.environment,
    runtime: incidentsRuntime,
    correlationId: hold.scope === "correlation" ? hold.scopeId : `cor_${derivedUuid(`hold ${hold.holdId}`)}`,
    origin: by === null ? "schedule" : "human",
    userId: by,
  });
}
