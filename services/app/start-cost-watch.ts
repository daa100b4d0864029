import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { toBudgetFacts } from "../../processors/cost/budget-facts.ts";
import type { Budget } from "../../processors/cost/budgets.ts";
import { findLowered, loadPassedBudgets } from "../../processors/cost/budget-queries.ts";
import { toCrossingKey } from "../../processors/cost/cost.ts";
import { findAnomalies } from "../../processors/cost/queries.ts";
import type { LoweredLimit } from "../cost-watch/announce-crossings.ts";
import type { Reporter } from "../cost-watch/report-facts.ts";
import { startCostWatch } from "../cost-watch/watch.ts";
import { systemClock } from "../platform/clock.ts";
import { callGate } from "./gate-client.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import type { Tx } from "../platform/postgres.ts";
import { codecWhenRegistered, registryOf, serviceDatabase } from "./wiring.ts";

/**
 * Starts the watch over spending. Where a folder of reporters' tokens is configured, it also tells the gate how budgets
 * stand; its rules can then deny by them.
 */
export async function startCostWatchService(
  around: Surroundings,
  budgets: readonly Budget[],
  signal: AbortSignal,
): Promise<RunningService> {
  const { config } = around;
  const log = around.log.child({ service: "cost-watch" });
  const database = serviceDatabase(config, "desk", { maxConnections: 2 });
  const registry = registryOf(config);
  const codec = await codecWhenRegistered(database, registry, log, signal);
  const { reporterTokensDir } = config.cost;
  const deps = { database, codec, clock: systemClock, environment: config.environment };
  const watch = startCostWatch({
    log,
    anomalies: { ...deps, findAnomalies },
    crossings: { ...deps, findLowered: (tx, day) => loadLoweredLimits(tx, budgets, day) },
    facts:
      reporterTokensDir === undefined
        ? null
        : {
            loadReporters: () => loadReporters(reporterTokensDir),
            loadFacts: async (tenantId, day) =>
              toBudgetFacts(
                budgets,
                await loadPassedBudgets(database, budgets, { day, tenantId }),
                tenantId,
                day,
              ),
            report: async (token, fact) => {
              const path = "by" in fact ? "/v1/facts/sets" : "/v1/facts";
              await callGate(config, { method: "POST", path, token, body: fact });
            },
            nowMs: () => systemClock.nowMs(),
            log,
          },
  });
  return {
    name: "cost-watch",
    probes: {
      "cost-watch": async () => {
        await database.query("SELECT 1");
        return {
          state: "up",
          detail: reporterTokensDir === undefined ? "the gate is told nothing" : "the gate is told",
        };
      },
    },
    async close() {
      await watch.stop();
      registry.close();
      await database.end();
    },
  };
}

/** Limits that were lowered below what is spent, as the ledger says them when something is spent next. */
export async function loadLoweredLimits(
  tx: Tx,
  budgets: readonly Budget[],
  day: string,
): Promise<readonly LoweredLimit[]> {
  const lines = await loadPassedBudgets(tx, budgets, { day, tenantId: null });
  return findLowered(budgets, lines).map(({ line, budget, ...crossed }) => ({
    tenantId: line.tenant_id,
    dedupeKey: toCrossingKey(budget.id, line.scope_id, line.period, crossed),
    summary: {
      budget_id: budget.id,
      scope: budget.scope,
      scope_id: line.scope_id,
      limit_kind: crossed.kind,
      limit_micros: crossed.limitMicros,
      spent_micros: line.spent_micros,
      period: line.period,
    },
  }));
}

const ending = ".token";

/** Tokens of a folder, read anew each time so that they can be exchanged: `<tenant>.token`. */
async function loadReporters(dir: string): Promise<readonly Reporter[]> {
  const names = (await readdir(dir)).filter((name) => name.endsWith(ending)).sort();
  return Promise.all(
    names.map(async (name) => ({
      tenantId: name.slice(0, -ending.length),
      token: (await readFile(join(dir, name), "utf8")).trim(),
    })),
  );
}
