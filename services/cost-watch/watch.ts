import type { Log } from "../platform/log.ts";
import type { AnomalyDeps } from "./announce-anomalies.ts";
import { announceAnomalies, lastClosedDay } from "./announce-anomalies.ts";
import type { FactReporting } from "./report-facts.ts";
import { reportFacts } from "./report-facts.ts";

/** Facts are told this often; rules that name them give a `max_age` of a few times as much. */
const everyMs = 30_000;

/** What the watch over spending does; `facts` is null where nobody may report them. */
export interface CostWatchOptions {
  readonly anomalies: AnomalyDeps;
  readonly facts: FactReporting | null;
  readonly log: Log;
  readonly everyMs?: number;
}

/** Watches budgets and unusual days until it is stopped; a look that fails is made up for by the next one. */
export function startCostWatch(options: CostWatchOptions): { stop(): Promise<void> } {
  const { anomalies, facts, log } = options;
  let running: Promise<void> = Promise.resolve();
  let isBusy = false;
  let judgedDay: string | null = null;

  async function look(): Promise<void> {
    if (facts !== null) await reportFacts(facts);
    const day = lastClosedDay(anomalies.clock.nowMs());
    if (day === judgedDay) return;
    const count = await announceAnomalies(anomalies, day);
    judgedDay = day;
    if (count > 0) log.error({ count, day }, "scopes spent far more than before");
  }
  function start(): void {
    if (isBusy) return;
    isBusy = true;
    running = look()
      .catch((error: unknown) => log.warn({ err: error }, "spending was not looked at; trying again"))
      .finally(() => (isBusy = false));
  }

  start();
  const timer = setInterval(start, options.everyMs ?? everyMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
