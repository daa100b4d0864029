import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import type { Processor } from "../../processors/kit/processor.ts";

const prices = parsePrices([]);
if (!prices.ok) throw new Error(prices.problems.join("\n"));

/** The ledger without a price or a budget: what matters here is which rows there are. */
export const cost: Processor = createCost({ prices: prices.prices, budgets: [] });
