import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { Summaries } from "../../schemas/generated/types.ts";
import type { Clock } from "../platform/clock.ts";
import { derivedUuid, emissionEventId } from "../platform/ids.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import { watchRuntime } from "./watch-runtime.ts";

/** A limit that a budget is past although nothing was spent since it was set. */
export interface LoweredLimit {
  readonly tenantId: string;
  /** As the ledger names the passing of a limit: it would say the same event when something is spent next. */
  readonly dedupeKey: string;
  readonly summary: Summaries["fabric.budget.crossed"];
}

/** What saying of lowered limits needs. */
export interface CrossingDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
  /** Finds them on a UTC day; handed in, since the tables are the ledger's. */
  readonly findLowered: (tx: Tx, day: string) => Promise<readonly LoweredLimit[]>;
}

/**
 * Says of each limit that was lowered below what is spent that it is passed, once per `told`, and returns how many. The
 * ledger says the same event with the next spending, under the same id, which every consumer drops; a scope that its budget
 * stops spends nothing more.
 */
export async function announceCrossings(deps: CrossingDeps, told: Set<string>): Promise<number> {
  const nowMs = deps.clock.nowMs();
  const said = await deps.database.transaction(async (tx) => {
    const found = await deps.findLowered(tx, new Date(nowMs).toISOString().slice(0, 10));
    const events = found
      .map((one) => ({
        one,
        id: emissionEventId("cost", "fabric.budget.crossed", one.tenantId, one.dedupeKey),
      }))
      .filter(({ id }) => !told.has(id))
      .map(({ one, id }) =>
        toEnvelope(draft("fabric.budget.crossed", one.summary), {
          eventId: id,
          recordedAtMs: nowMs,
          tenantId: one.tenantId,
          environment: deps.environment,
          runtime: watchRuntime,
          correlationId: `cor_${derivedUuid(JSON.stringify(["budget-crossed", one.tenantId, one.dedupeKey]))}`,
          origin: "schedule",
        }),
      );
    if (events.length > 0) await appendOutbox(tx, toOutboxRows(deps.codec, events));
    return events.map(({ event_id }) => event_id);
  });
  for (const id of said) told.add(id);
  if (said.length > 0) notifyOutbox(deps.database);
  return said.length;
}
