import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { Summaries } from "../../schemas/generated/types.ts";
import type { Clock } from "../platform/clock.ts";
import { derivedUuid } from "../platform/ids.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import { watchRuntime } from "./watch-runtime.ts";

/** A scope that spent far more in a day than before. */
export interface UnusualDay {
  readonly tenantId: string;
  readonly scope: Summaries["fabric.cost.anomalous"]["scope"];
  readonly scopeId: string;
  /** UTC, such as 2026-11-30. */
  readonly day: string;
  readonly observedMicros: bigint;
  readonly expectedMicros: bigint;
}

/** What the watch over spending needs. */
export interface AnomalyDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
  /** Finds a day's unusual scopes; handed in, since the tables are the ledger's. */
  readonly findAnomalies: (tx: Tx, day: string) => Promise<readonly UnusualDay[]>;
}

const dayMs = 86_400_000;
/** A day is judged when it is over by this: the ledger may be behind. */
const graceMs = 3_600_000;

/** The last UTC days that are over for good, the oldest first. */
export function lastClosedDays(nowMs: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) =>
    new Date(nowMs - graceMs - dayMs * (count - index)).toISOString().slice(0, 10),
  );
}

/**
 * Says of each scope whose day was unusual that it was, and returns how many. The ids are derived from scope and day: asked
 * again, and by two at once, it says the same event again, which every consumer drops.
 */
export async function announceAnomalies(deps: AnomalyDeps, day: string): Promise<number> {
  const count = await deps.database.transaction(async (tx) => {
    const found = await deps.findAnomalies(tx, day);
    const events = found.map((one) => {
      const name = JSON.stringify(["cost-anomaly", one.tenantId, one.scope, one.scopeId, one.day]);
      return toEnvelope(
        draft("fabric.cost.anomalous", {
          scope: one.scope,
          scope_id: one.scopeId,
          window_started_at: Date.parse(`${one.day}T00:00:00Z`),
          window_ms: BigInt(dayMs),
          observed_micros: one.observedMicros,
          expected_micros: one.expectedMicros,
        }),
        {
          eventId: `evt_${derivedUuid(name)}`,
          recordedAtMs: deps.clock.nowMs(),
          tenantId: one.tenantId,
          environment: deps.environment,
          runtime: watchRuntime,
          correlationId: `cor_${derivedUuid(name)}`,
          origin: "schedule",
        },
      );
    });
    if (events.length > 0) await appendOutbox(tx, toOutboxRows(deps.codec, events));
    return events.length;
  });
  if (count > 0) notifyOutbox(deps.database);
  return count;
}
