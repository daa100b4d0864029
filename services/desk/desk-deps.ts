import type { Clock } from "../platform/clock.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import type { Database } from "../platform/postgres.ts";

/** What every command of the desk needs. */
export interface DeskDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
}
