import type { Log } from "../platform/log.ts";
import { endTimedTrips } from "./end-hold.ts";
import type { IncidentDeps } from "./incident-deps.ts";

/** A trip that ends by its time holds nothing from then on; only its event waits for this. */
const everyMs = 1_000;

/** Closes trips whose time is over until it is stopped. Several at once share the work. */
export function startTripTimer(deps: IncidentDeps & { readonly log: Log; readonly everyMs?: number }): {
  stop(): Promise<void>;
} {
  let running: Promise<unknown> = Promise.resolve();
  let isBusy = false;
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    running = endTimedTrips(deps)
      .catch((error: unknown) =>
        deps.log.warn({ err: error }, "trips of the breaker were not looked at; trying again"),
      )
      .finally(() => (isBusy = false));
  }, deps.everyMs ?? everyMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
