import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseBudgets } from "../../processors/cost/budgets.ts";
import type { CostSettings } from "../../processors/cost/cost.ts";
import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Config } from "../platform/config.ts";
import type { Place } from "./place.ts";
import { processors } from "./processors.ts";

/** Every processor, with those that are made from files that people write. */
export function processorsWith(cost: CostSettings): readonly Processor[] {
  return [...processors, createCost(cost)];
}

/** The price list and the budgets, from the configured places or the package's own. Throws CONFIG_INVALID with every problem. */
export async function loadCostSettings(config: Config, place: Place): Promise<CostSettings> {
  const pricesDir = config.cost.pricesDir ?? join(place.packageDir, "deploy", "prices");
  const budgetsFile = config.cost.budgetsFile ?? join(place.packageDir, "deploy", "budgets.yaml");
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
