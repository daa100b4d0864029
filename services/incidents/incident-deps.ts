import type { Clock } from "../platform/clock.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import type { Database } from "../platform/postgres.ts";

/** What every command on holds needs. Kafka is no part of it: what is committed is in force. */
export interface IncidentDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
}
