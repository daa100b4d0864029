import type { Fault } from "../../schemas/faults.ts";
import type { Database } from "../platform/postgres.ts";
import type { OutboxEvent } from "./outbox-event.ts";

/**
 * Deletes exactly these rows. A range would be faster for the index, and would take rows with it that committed late
 * and were never sent.
 */
export async function removeEvents(database: Database, events: readonly OutboxEvent[]): Promise<void> {
  await database.query({
    name: "outbox-remove",
    text: "DELETE FROM outbox.events WHERE seq = ANY ($1::bigint[])",
    values: [events.map((event) => event.seq)],
  });
}

/** A row that the broker will never take, and what it said. */
export interface RefusedEvent {
  readonly event: OutboxEvent;
  readonly fault: Fault;
}

/** Moves a row to `outbox.parked`, whole, so that its key goes on. Once, however often it is called. */
export async function parkEvent(database: Database, relayId: string, refused: RefusedEvent): Promise<void> {
  await database.query(
    `WITH gone AS (DELETE FROM outbox.events WHERE seq = $1 RETURNING *)
     INSERT INTO outbox.parked (seq, id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers,
                                created_at, code, reason, parked_by)
     SELECT seq, id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers, created_at, $2, $3, $4
     FROM gone ON CONFLICT (seq) DO NOTHING`,
    [refused.event.seq, refused.fault.code, refused.fault.message, relayId],
  );
}
