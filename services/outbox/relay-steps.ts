import type { Database } from "../platform/postgres.ts";
import type { OutboxEvent } from "./outbox-event.ts";
import type { Publisher, SendOutcome } from "./publisher.ts";
import { readEvents } from "./read-events.ts";
import type { ReadRequest } from "./read-events.ts";
import { parkEvent, removeEvents } from "./remove-events.ts";
import type { RefusedEvent } from "./remove-events.ts";

/** What the relay does to the world, in this order per batch. Tests put a fault in place of one of them. */
export interface RelaySteps {
  read(request: ReadRequest): Promise<readonly OutboxEvent[]>;
  send(events: readonly OutboxEvent[]): Promise<SendOutcome>;
  remove(events: readonly OutboxEvent[]): Promise<void>;
  park(refused: RefusedEvent): Promise<void>;
}

export function createRelaySteps(database: Database, publisher: Publisher, relayId: string): RelaySteps {
  return {
    read: (request) => readEvents(database, request),
    send: (events) => publisher.send(events),
    remove: (events) => removeEvents(database, events),
    park: (refused) => parkEvent(database, relayId, refused),
  };
}
