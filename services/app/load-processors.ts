import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { createBreaker } from "../../processors/breaker/breaker.ts";
import type { Thresholds } from "../../processors/breaker/thresholds.ts";
import { parseThresholds } from "../../processors/breaker/thresholds.ts";
import type { ModelCost } from "../../processors/breaker/words.ts";
import { parseBudgets } from "../../processors/cost/budgets.ts";
import type { CostSettings } from "../../processors/cost/cost.ts";
import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import { toldFirst } from "../../processors/cost/usage-row.ts";
import { toCharge } from "../../processors/cost/words.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Config } from "../platform/config.ts";
import type { Place } from "./place.ts";
import { processors } from "./processors.ts";

/** Every processor, with those that are made from files that people write; without thresholds there is no breaker. */
export function processorsWith(cost: CostSettings, thresholds?: Thresholds): readonly Processor[] {
  const ledger = [...processors, createCost(cost)];
  if (thresholds === undefined) return ledger;
  return [...ledger, createBreaker({ thresholds, costOf: (event) => costOf(event, cost) })];
}

/** What the ledger would book; what it cannot book is set aside there, and costs nothing here. */
function costOf(event: Envelope<"agent.model.completed">, { prices }: CostSettings): ModelCost {
  try {
    const { amount_micros, price_state } = toCharge(event, prices).usage;
    const told = toldFirst.findIndex((one) => one === price_state);
    return { micros: amount_micros, silence: told === -1 ? toldFirst.length : told };
  } catch {
    return { micros: 0n, silence: toldFirst.length };
  }
}

/** The breaker's thresholds, from the configured place or the package's own. Throws CONFIG_INVALID with every problem. */
export async function loadThresholds(config: Config, place: Place): Promise<Thresholds> {
  const file = config.breaker.file ?? join(place.packageDir, "deploy", "breaker.yaml");
  const parsed = parseThresholds(file, await read(file, () => readFile(file, "utf8")));
  if (!parsed.ok) throw new Fault("CONFIG_INVALID", parsed.problems.join("; "));
  return parsed.thresholds;
}

/** The price list and the budgets, from the configured places or the package's own. Throws CONFIG_INVALID with every problem. */
export function loadCostSettings(config: Config, place: Place): Promise<CostSettings> {
  const { pricesDir, budgetsFile } = costFilesOf(config, place);
  return loadCostFiles(pricesDir, budgetsFile);
}

/** Where price list and budgets are. */
export function costFilesOf(
  config: Config,
  place: Place,
): { readonly pricesDir: string; readonly budgetsFile: string } {
  return {
    pricesDir: config.cost.pricesDir ?? join(place.packageDir, "deploy", "prices"),
    budgetsFile: config.cost.budgetsFile ?? join(place.packageDir, "deploy", "budgets.yaml"),
  };
}

/** The price list and the budgets of these files. Throws CONFIG_INVALID with every problem. */
export async function loadCostFiles(pricesDir: string, budgetsFile: string): Promise<CostSettings> {
  const names = (await read(pricesDir, () => readdir(pricesDir)))
    .filter((name) => name.endsWith(".yaml"))
    .sort();
  const files = await Promise.all(
    names.map(async (name) => {
      const file = join(pricesDir, name);
      return { file, text: await read(file, () => readFile(file, "utf8")) };
    }),
  );
  const prices = parsePrices(files);
  const budgets = parseBudgets(budgetsFile, await read(budgetsFile, () => readFile(budgetsFile, "utf8")));
  if (!prices.ok || !budgets.ok) {
    const problems = [...(prices.ok ? [] : prices.problems), ...(budgets.ok ? [] : budgets.problems)];
    throw new Fault("CONFIG_INVALID", problems.join("; "));
  }
  return { prices: prices.prices, budgets: budgets.budgets };
}

async function read<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Fault("CONFIG_INVALID", `\`${path}\` cannot be read`, { cause: error });
  }
}
