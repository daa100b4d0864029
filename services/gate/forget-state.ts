import type { Log } from "../platform/log.ts";
import type { Tx } from "../platform/postgres.ts";

const everyMs = 60_000;
const atOnce = 5_000;

/** Deletes counters of windows that are over, deferrals that nobody came back for, and clients that were heard a year ago. */
export async function forgetState(database: Tx): Promise<number> {
  const counters = await database.query({
    name: "gate-forget-counters",
    text: `DELETE FROM gate.counters WHERE counter_key IN (SELECT counter_key FROM gate.counters
      WHERE expires_at < clock_timestamp() ORDER BY counter_key LIMIT $1 FOR UPDATE SKIP LOCKED)`,
    values: [atOnce],
  });
  const deferrals = await database.query({
    name: "gate-forget-deferrals",
    text: `DELETE FROM gate.deferrals WHERE until < clock_timestamp() - interval '1 day'`,
  });
  const clients = await database.query({
    name: "gate-forget-clients",
    text: `DELETE FROM gate.clients WHERE last_seen_at < clock_timestamp() - interval '1 year'`,
  });
  return counters.rowCount + deferrals.rowCount + clients.rowCount;
}

/** Does so again and again, until it is stopped. */
export function startForgetting(deps: { readonly database: Tx; readonly log: Log }): {
  stop(): Promise<void>;
} {
  let running: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    running = running
      .then(() => forgetState(deps.database))
      .catch((error: unknown) => deps.log.warn({ err: error }, "old counters stay for now; trying again"));
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
