import { toDecimal } from "../../processors/cost/money.ts";
import type { CostLine, CostReport } from "../../processors/cost/queries.ts";
import { toTable } from "../cli/report.ts";

/** A report as an aligned table, its total last, and what has no price below it. */
export function renderCostReport(by: string, period: string, report: CostReport, columns?: number): string {
  const { lines, total } = report;
  const table = toTable(
    [
      by.toUpperCase(),
      "USD",
      "CORRECTED",
      "CALLS",
      "INPUT",
      "CACHED",
      "WRITTEN",
      "OUTPUT",
      "REASONING",
      "WALL",
      "CHILDREN",
      "UNPRICED",
    ],
    [...lines, total].map(toCells),
    columns,
  );
  const shown = lines.length === 0 ? `nothing was used in ${period}` : `${period}, by ${by}\n\n${table}`;
  return [shown, ...toNotes(total)].join("\n\n");
}

function toCells(line: CostLine): string[] {
  const input = line.uncached_input_tokens + line.cached_input_tokens + line.cache_write_tokens;
  return [
    line.key,
    toDecimal(line.amount_micros),
    line.corrections_micros === 0n ? "" : toDecimal(line.corrections_micros),
    ...[
      line.calls,
      input,
      line.cached_input_tokens,
      line.cache_write_tokens,
      line.output_tokens,
      line.reasoning_tokens,
    ].map(String),
    `${toDecimal(line.wall_ms * 1_000n).slice(0, -3)}s`,
    String(line.fan_out),
    String(line.unpriced_calls + line.unmeasured_calls),
  ];
}

function toNotes(total: CostLine): string[] {
  const notes: string[] = [];
  if (total.unpriced_calls > 0n) {
    notes.push(
      `${String(total.unpriced_calls)} calls have no price and count 0: add it to the price list with listed_at, then \`fabric cost reprice\``,
    );
  }
  if (total.unmeasured_calls > 0n) {
    notes.push(
      `${String(total.unmeasured_calls)} calls came without tokens and without a cost: their source tells none`,
    );
  }
  return notes;
}
