import type { Clock } from "../../platform/clock.ts";
import { newEventId, toUuid } from "../../platform/ids.ts";
import type { Log } from "../../platform/log.ts";
import type { EventEncoder } from "../../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../platform/outbox.ts";
import type { Database } from "../../platform/postgres.ts";
import { toExpiredEvent } from "./capability-events.ts";
import { stateColumns, stateJoins, toCapabilityState } from "./capability-state.ts";

export interface ExpireDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
}

/** How often a gate looks, and how much it does at once. */
const sweepEveryMs = 30_000;
const sweepMax = 500;

/**
 * Says of rights that a resource began to use that they came to their end with calls left, each once. One gate at a time:
 * where another one is at it, nothing is done. A right that was never used says nothing at its end: most rights belong to
 * calls that their runtime carries out itself, and an event for each would be noise.
 */
export async function expireCapabilities(deps: ExpireDeps, limit: number = sweepMax): Promise<number> {
  const expired = await deps.database.transaction(async (tx) => {
    // 1702391913 = 'expi' in ASCII: the class of this lock, which ends with the transaction.
    const lock = await tx.query<{ mine: boolean }>("SELECT pg_try_advisory_xact_lock(1702391913, 0) AS mine");
    if (lock.rows[0]?.mine !== true) return 0;
    const found = await tx.query({
      name: "capability-expired",
      text: `SELECT ${stateColumns} FROM gate.capabilities AS c ${stateJoins}
        WHERE c.calls_used > 0 AND c.calls_used < c.max_calls AND c.revoked_at IS NULL AND c.expired_at IS NULL
          AND c.expires_at <= clock_timestamp()
        ORDER BY c.expires_at LIMIT $1 FOR UPDATE OF c SKIP LOCKED`,
      values: [limit],
    });
    const states = found.rows.map(toCapabilityState);
    if (states.length === 0) return 0;
    await tx.query({
      name: "capability-expire",
      text: "UPDATE gate.capabilities SET expired_at = clock_timestamp() WHERE capability_id = ANY ($1::uuid[])",
      values: [states.map((one) => toUuid(one.capabilityId))],
    });
    const events = states.map((state) =>
      toExpiredEvent(state, {
        eventId: newEventId(deps.clock),
        nowMs: deps.clock.nowMs(),
        environment: deps.environment,
      }),
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, events));
    return states.length;
  });
  if (expired > 0) notifyOutbox(deps.database);
  return expired;
}

/** Looks again and again, until it is stopped; a look that fails is made up for by the next one. */
export function startExpiring(deps: ExpireDeps & { readonly log: Log }): { stop(): Promise<void> } {
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = running
      .then(() => expireCapabilities(deps))
      .then(
        () => undefined,
        (error: unknown) => deps.log.warn({ err: error }, "ended rights were not told; trying again"),
      );
  }, sweepEveryMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
