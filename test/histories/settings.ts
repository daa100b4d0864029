import { createBreaker } from "../../processors/breaker/breaker.ts";
import type { Budget } from "../../processors/cost/budgets.ts";
import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import { audit } from "../../processors/audit/audit.ts";
import { evaluation } from "../../processors/eval/eval.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import { takeover } from "../../processors/takeover/takeover.ts";
import { createTrace } from "../../processors/trace/trace.ts";
import type { PlainPrice } from "../property/cost-reference.ts";
import { toPriceText } from "../property/cost-reference.ts";

/** Prices that change in the middle of the histories; one model has none. */
export const models: readonly PlainPrice[] = [
  {
    name: "claude-sonnet-4-5",
    from: "2026-01-01",
    until: "2026-10-01",
    rates: [3_000_000, 300_000, 3_750_000, 15_000_000],
  },
  { name: "claude-sonnet-4-5", from: "2026-10-01", rates: [2_500_001, 250_003, 3_125_007, 12_500_013] },
  { name: "claude-opus-4-1", from: "2026-01-01", rates: [15_000_000, 1_500_000, 18_750_000, 75_000_000] },
  { name: "gpt-5-codex", from: "2026-09-29", rates: [1_250_000, 125_000, 0, 10_000_000] },
];
export const tools: readonly PlainPrice[] = [
  { name: "web.fetch", from: "2026-01-01", rates: [1_000, 333, 7] },
  { name: "deploy.apply", from: "2026-09-30", rates: [0, 41, 0] },
];

const parsed = parsePrices([{ file: "prices.yaml", text: toPriceText(models, tools) }]);
if (!parsed.ok) throw new Error(parsed.problems.join("\n"));

const budget = (id: string, scope: Budget["scope"], period: Budget["period"]): Budget => ({
  id,
  tenant: "*",
  scope,
  scopeId: "*",
  period,
  softMicros: 1_000_000n,
  hardMicros: 50_000_000n,
});

/** The processors that ship. A trace keeps few spans, so that long goals reach the cut. */
export const processors: readonly Processor[] = [
  audit,
  // Histories are months old, and trip nothing; what is counted has to be the same all the same.
  createBreaker({
    thresholds: {
      usual: [
        {
          scope: "correlation",
          measure: "fan_out",
          windowMs: 60_000,
          limit: 3n,
          minCount: 1n,
          resetAfterMs: null,
        },
      ],
      byTenant: new Map(),
    },
    costOf: ({ redacted_summary: { cost_micros } }) => ({
      micros: cost_micros ?? 0n,
      silence: cost_micros === null ? 1 : 0,
    }),
  }),
  createCost({
    prices: parsed.prices,
    budgets: [
      budget("t", "tenant", "month"),
      budget("u", "user", "day"),
      budget("c", "correlation", "month"),
    ],
  }),
  evaluation,
  takeover,
  createTrace({ maxSpans: 300 }),
];
