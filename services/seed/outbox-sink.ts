import type { Envelope } from "../../schemas/envelope.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database } from "../platform/postgres.ts";

/** Takes the events of a history, in order. */
export interface EventSink {
  add(events: readonly Envelope[]): Promise<void>;
  /** Writes what is still held. */
  end(): Promise<void>;
}

/** Events per transaction of the outbox: a few hundred kilobytes. */
const batchEvents = 400;

/** Hands a history to the relay, as services hand it their own events. */
export function createOutboxSink(database: Database, encoder: EventEncoder): EventSink {
  let held: Envelope[] = [];
  async function flush(): Promise<void> {
    const batch = held;
    held = [];
    await database.transaction((tx) => appendOutbox(tx, toOutboxRows(encoder, batch)));
    notifyOutbox(database);
  }
  return {
    async add(events) {
      held.push(...events);
      while (held.length >= batchEvents) await flush();
    },
    end: flush,
  };
}
