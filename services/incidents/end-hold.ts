import type { Envelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { newEventId } from "../platform/ids.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Tx } from "../platform/postgres.ts";
import { toShownReason } from "./declare-incident.ts";
import { toLiftedEvent, toResetEvent } from "./hold-events.ts";
import type { EventPlace } from "./hold-events.ts";
import type { HoldRow } from "./hold-row.ts";
import { holdColumns, lockHold, toHoldRow } from "./hold-row.ts";
import type { IncidentDeps } from "./incident-deps.ts";

/** Who ends a hold, and why. */
export interface Ending {
  /** Of who ends it. */
  readonly tenantId: string;
  readonly holdId: string;
  readonly reason: string;
  readonly by: string;
}

/** Lifts an incident: nobody but a person does. Throws INCIDENT_UNKNOWN or INCIDENT_LIFTED. */
export async function liftIncident(deps: IncidentDeps, one: Ending): Promise<HoldRow> {
  return end(deps, one, {
    source: "incident",
    unknown: "INCIDENT_UNKNOWN",
    ended: "INCIDENT_LIFTED",
    toEvent: toLiftedEvent,
  });
}

/** Resets a trip of the breaker. Throws BREAKER_UNKNOWN or BREAKER_RESET. */
export async function resetTrip(deps: IncidentDeps, one: Ending): Promise<HoldRow> {
  return end(deps, one, {
    source: "breaker",
    unknown: "BREAKER_UNKNOWN",
    ended: "BREAKER_RESET",
    toEvent: toResetEvent,
  });
}

interface Kind {
  readonly source: HoldRow["source"];
  readonly unknown: "INCIDENT_UNKNOWN" | "BREAKER_UNKNOWN";
  readonly ended: "INCIDENT_LIFTED" | "BREAKER_RESET";
  readonly toEvent: (hold: HoldRow, by: string, reason: string, place: EventPlace) => Envelope;
}

async function end(deps: IncidentDeps, one: Ending, kind: Kind): Promise<HoldRow> {
  const reason = toShownReason(one.reason);
  const ended = await deps.database.transaction(async (tx) => {
    const hold = await lockHold(tx, one.tenantId, { holdId: one.holdId, source: kind.source });
    if (hold === null) throw new Fault(kind.unknown);
    if (!hold.isOpen) throw new Fault(kind.ended, hold.liftedBy === null ? undefined : `by ${hold.liftedBy}`);
    const [after] = await markEnded(tx, [hold.holdId], one.by, reason);
    if (after === undefined) throw new Fault("INTERNAL", "a hold was not ended");
    const event = kind.toEvent(after, one.by, reason, toPlace(deps, after));
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return after;
  });
  notifyOutbox(deps.database);
  return ended;
}

/** What is told of a trip that ended by its time. */
const timeReason = "its time is over, as the breaker's file says";

/**
 * Closes trips whose time is over, and says so; returns how many. They hold nothing since that time. One that made room
 * for a later trip is closed already, but nobody has told of it: it has no reason yet.
 * INVARIANT: each trip has its reset (test/integration/incidents.test.ts "tells of a trip that made room for the next one").
 */
export async function endTimedTrips(deps: IncidentDeps): Promise<number> {
  const count = await deps.database.transaction(async (tx) => {
    const due = await tx.query<{ hold_id: string }>({
      name: "incidents-due",
      text: `SELECT hold_id FROM incidents.holds
        WHERE source = 'breaker' AND ((lifted_at IS NULL AND until <= clock_timestamp())
          OR (lifted_by = 'time' AND lift_reason IS NULL))
        ORDER BY hold_id FOR UPDATE SKIP LOCKED LIMIT 100`,
    });
    if (due.rowCount === 0) return 0;
    const ended = await markEnded(
      tx,
      due.rows.map((row) => row.hold_id),
      "time",
      timeReason,
    );
    const events = ended.map((hold) => toResetEvent(hold, null, timeReason, toPlace(deps, hold)));
    await appendOutbox(tx, toOutboxRows(deps.codec, events));
    return ended.length;
  });
  if (count > 0) notifyOutbox(deps.database);
  return count;
}

async function markEnded(tx: Tx, holdIds: readonly string[], by: string, reason: string): Promise<HoldRow[]> {
  const done = await tx.query({
    name: "incidents-end",
    text: `UPDATE incidents.holds SET lifted_at = coalesce(lifted_at, clock_timestamp()), lifted_by = $2, lift_reason = $3
      WHERE hold_id = ANY ($1::uuid[]) RETURNING ${holdColumns}`,
    values: [`{${holdIds.join(",")}}`, by, reason],
  });
  return done.rows.map(toHoldRow);
}

function toPlace(deps: IncidentDeps, hold: HoldRow): EventPlace {
  return {
    eventId: newEventId(deps.clock),
    nowMs: hold.liftedAt?.getTime() ?? deps.clock.nowMs(),
    environment: deps.environment,
  };
}
