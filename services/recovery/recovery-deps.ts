import type { Clock } from "../platform/clock.ts";
import type { OffsetsPort } from "../platform/kafka-offsets.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import type { Database } from "../platform/postgres.ts";

/** What every command of the room needs. */
export interface RecoveryDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
  /** Where the logs begin and end, for whoever chooses how a partition goes on. */
  readonly offsets: Pick<OffsetsPort, "existing" | "ends">;
}
