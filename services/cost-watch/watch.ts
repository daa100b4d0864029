import type { Log } from "../platform/log.ts";
import type { AnomalyDeps } from "./announce-anomalies.ts";
import { announceAnomalies, lastClosedDays } from "./announce-anomalies.ts";
import type { CrossingDeps } from "./announce-crossings.ts";
import { announceCrossings } from "./announce-crossings.ts";
import type { FactReporting } from "./report-facts.ts";
import { reportFacts } from "./report-facts.ts";

/** Facts are told this often; rules that name them give a `max_age` of a few times as much. */
const everyMs = 30_000;

/** Days that are judged when the watch starts: unusual days of a time in which it was away are said late, and not never. */
const judgedDays = 7;

/** What the watch over spending does; `facts` is null where nobody may report them. */
export interface CostWatchOptions {
  readonly anomalies: AnomalyDeps;
  readonly crossings: CrossingDeps;
  readonly facts: FactReporting | null;
  readonly log: Log;
  readonly everyMs?: number;
}

/** Watches budgets and unusual days until it is stopped; a look that fails is made up for by the next one. */
export function startCostWatch(options: CostWatchOptions): { stop(): Promise<void> } {
  const { anomalies, crossings, facts, log } = options;
  let running: Promise<void> = Promise.resolve();
  let isBusy = false;
  const judged = new Set<string>();
  const told = new Set<string>();

  const tasks: readonly { readonly name: string; readonly work: () => Promise<void> }[] = [
    {
      name: "tell the gate of budgets",
      work: async () => {
        if (facts !== null) await reportFacts(facts);
      },
    },
    {
      name: "say which limits were lowered",
      work: async () => {
        await announceCrossings(crossings, told);
      },
    },
    { name: "judge days", work: judgeDays },
  ];

  async function judgeDays(): Promise<void> {
    const days = lastClosedDays(anomalies.clock.nowMs(), judgedDays);
    for (const day of days) {
      if (judged.has(day)) continue;
      const count = await announceAnomalies(anomalies, day);
      judged.add(day);
      if (count > 0) log.error({ count, day }, "scopes spent far more than before");
    }
    for (const day of judged) if (!days.includes(day)) judged.delete(day);
  }

  async function look(): Promise<void> {
    for (const { name, work } of tasks) {
      try {
        await work();
      } catch (error) {
        log.warn({ err: error, task: name }, "the watch over spending failed at one task; trying again");
      }
    }
  }
  function start(): void {
    if (isBusy) return;
    isBusy = true;
    running = look().finally(() => (isBusy = false));
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
