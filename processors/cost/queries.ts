import type { Transaction } from "../kit/transaction.ts";
import type { Unusual } from "./anomalies.ts";
import { judgeWindow } from "./anomalies.ts";
import type { BudgetScope } from "./budgets.ts";
import { budgetScopes, scopeColumns } from "./budgets.ts";

/** What a report may be grouped by, and the expression that it is. */
const dimensions = {
  tenant: "tenant_id",
  agent: "coalesce(agent_id, '(main agent)')",
  user: "coalesce(user_id, '(unknown)')",
  model: "coalesce(model, '(no model)')",
  tool: "coalesce(tool, '(no tool)')",
  runtime: "runtime_kind",
  environment: "environment",
  session: "coalesce(session_id, '(none)')",
  correlation: "correlation_id",
  kind: "kind",
  day: "day::text",
} as const;
export type CostDimension = keyof typeof dimensions;
/** Every dimension of a report. */
export const costDimensions = Object.keys(dimensions) as readonly CostDimension[];

/** What is asked of the ledger. Days are UTC, the last one excluded; null: without an end. */
export interface CostQuestion {
  readonly by: CostDimension;
  readonly fromDay: string | null;
  readonly toDay: string | null;
  readonly tenantId: string | null;
  readonly limit: number;
}

/** One line of a report: amounts in millionths of the price list's currency. */
export interface CostLine {
  readonly key: string;
  readonly amount_micros: bigint;
  readonly corrections_micros: bigint;
  readonly calls: bigint;
  readonly uncached_input_tokens: bigint;
  readonly cached_input_tokens: bigint;
  readonly cache_write_tokens: bigint;
  readonly output_tokens: bigint;
  readonly reasoning_tokens: bigint;
  readonly wall_ms: bigint;
  readonly fan_out: bigint;
  readonly unpriced_calls: bigint;
  readonly unmeasured_calls: bigint;
}

/** A report: its lines, the dearest first, and the total of all, also of lines that were cut off. */
export interface CostReport {
  readonly lines: readonly CostLine[];
  readonly total: CostLine;
}

const totalKey = "total";
const quantities = [
  "amount_micros",
  "calls",
  "uncached_input_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "output_tokens",
  "reasoning_tokens",
  "wall_ms",
  "fan_out",
] as const;
const sums = [...quantities, "corrections_micros", "unpriced_calls", "unmeasured_calls"] as const;

/**
 * What was spent, by one dimension. Reads the table that the analysts' views stand on, so that both say the same. Rows are
 * grouped once, in parallel; the total is the sum of the groups, and calls that were repriced are looked up by themselves.
 */
export async function loadCostReport(tx: Transaction, question: CostQuestion): Promise<CostReport> {
  const key = dimensions[question.by];
  const asked = `u.is_counted AND ($1::date IS NULL OR u.day >= $1) AND ($2::date IS NULL OR u.day < $2)
        AND ($3::text IS NULL OR u.tenant_id = $3)`;
  const found = await tx.query<Omit<CostLine, "key"> & { key: string | null }>(
    `WITH booked AS (
        SELECT ${key} AS key, ${quantities.map((name) => `sum(${name}) AS ${name}`).join(", ")},
          sum(amount_micros) FILTER (WHERE kind = 'correction') AS corrections_micros,
          count(*) FILTER (WHERE price_state = 'unpriced') AS unpriced,
          count(*) FILTER (WHERE price_state = 'unmeasured') AS unmeasured
        FROM cost.usage AS u WHERE ${asked} GROUP BY 1),
      repriced AS (
        SELECT ${key} AS key, count(*) FILTER (WHERE price_state = 'unpriced') AS unpriced,
          count(*) FILTER (WHERE price_state = 'unmeasured') AS unmeasured
        FROM (SELECT DISTINCT r.tenant_id AS of_tenant, r.corrects_event_id AS of_event FROM cost.usage AS r
          WHERE r.is_counted AND r.corrects_event_id IS NOT NULL) AS r
        JOIN cost.usage AS u ON u.event_id = r.of_event AND u.tenant_id = r.of_tenant
        WHERE ${asked} GROUP BY 1),
      lines AS (
        SELECT b.*, b.unpriced - coalesce(r.unpriced, 0) AS unpriced_calls,
          b.unmeasured - coalesce(r.unmeasured, 0) AS unmeasured_calls
        FROM booked AS b LEFT JOIN repriced AS r ON r.key IS NOT DISTINCT FROM b.key)
      (SELECT NULL AS key, ${sums.map((name) => `coalesce(sum(${name}), 0)::bigint AS ${name}`).join(", ")} FROM lines)
      UNION ALL
      (SELECT key, ${sums.map((name) => `coalesce(${name}, 0)::bigint AS ${name}`).join(", ")} FROM lines
        ORDER BY ${question.by === "day" ? "key" : "lines.amount_micros DESC, key"} LIMIT $4)`,
    [question.fromDay, question.toDay, question.tenantId, question.limit],
  );
  const total = found.rows.find((row) => row.key === null);
  if (total === undefined) throw new Error("a sum of nothing is a row too");
  const lines = found.rows.flatMap(({ key: of, ...row }) => (of === null ? [] : [{ ...row, key: of }]));
  return { lines, total: { ...total, key: totalKey } };
}

const repriced = `EXISTS (SELECT FROM cost.usage r WHERE r.corrects_event_id = u.event_id AND r.tenant_id = u.tenant_id AND r.is_counted)`;

/** Tables whose whole content is the same after the same events, whatever their order: what a comparison reads. */
export const dumpTables = [
  { table: "usage", orderBy: "event_id" },
  { table: "entries", orderBy: "event_id, line" },
  { table: "budget_state", orderBy: "budget_id, tenant_id, scope_id, period" },
  { table: "closings", orderBy: "tenant_id, period" },
] as const;

/** A call as a correction or a repricing needs it. */
export interface BookedCall {
  readonly event_id: string;
  readonly tenant_id: string;
  readonly recorded_at: Date;
  readonly kind: string;
  readonly is_counted: boolean;
  readonly environment: string;
  readonly runtime_kind: string;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly session_id: string | null;
  readonly turn_id: string | null;
  readonly correlation_id: string;
  readonly model: string | null;
  readonly tool: string | null;
  readonly price_state: string;
  readonly amount_micros: bigint;
  readonly uncached_input_tokens: bigint;
  readonly cached_input_tokens: bigint;
  readonly cache_write_tokens: bigint;
  readonly output_tokens: bigint;
}

const bookedColumns = `event_id, tenant_id, recorded_at, kind, is_counted, environment, runtime_kind, user_id, agent_id,
  session_id, turn_id, correlation_id, model, tool, price_state, amount_micros, uncached_input_tokens, cached_input_tokens,
  cache_write_tokens, output_tokens`;

/** A booked call by its event, or null. */
export async function loadBookedCall(tx: Transaction, eventId: string): Promise<BookedCall | null> {
  const found = await tx.query<BookedCall>(`SELECT ${bookedColumns} FROM cost.usage WHERE event_id = $1`, [
    eventId,
  ]);
  return found.rows[0] ?? null;
}

/** Models of calls that have no price and no entry that repriced them, and how many calls each has. */
export async function loadUnpricedModels(
  tx: Transaction,
  tenantId: string | null,
): Promise<readonly { readonly model: string | null; readonly calls: bigint }[]> {
  const found = await tx.query<{ model: string | null; calls: bigint }>(
    `SELECT model, count(*) AS calls FROM cost.usage AS u
      WHERE is_counted AND price_state = 'unpriced' AND ($1::text IS NULL OR tenant_id = $1) AND NOT ${repriced}
      GROUP BY model ORDER BY model`,
    [tenantId],
  );
  return found.rows;
}

/** Calls of some models that have no price and no entry that repriced them, the oldest first, from past one of them on. */
export async function loadUnpricedCalls(
  tx: Transaction,
  question: {
    readonly tenantId: string | null;
    readonly models: readonly string[];
    readonly after: Pick<BookedCall, "recorded_at" | "event_id"> | null;
    readonly limit: number;
  },
): Promise<readonly BookedCall[]> {
  const found = await tx.query<BookedCall>(
    `SELECT ${bookedColumns} FROM cost.usage AS u
      WHERE is_counted AND price_state = 'unpriced' AND ($1::text IS NULL OR tenant_id = $1) AND NOT ${repriced}
        AND model = ANY ($3::text[]) AND ($4::timestamptz IS NULL OR (recorded_at, event_id) > ($4, $5))
      ORDER BY recorded_at, event_id LIMIT $2`,
    [
      question.tenantId,
      question.limit,
      question.models,
      question.after?.recorded_at ?? null,
      question.after?.event_id ?? null,
    ],
  );
  return found.rows;
}

/** A scope whose day was unusual. */
export interface Anomaly extends Unusual {
  readonly tenantId: string;
  readonly scope: BudgetScope;
  readonly scopeId: string;
  readonly day: string;
}

/** Windows that a day is compared with. */
const historyDays = 28;

/**
 * Scopes that spent far more on a UTC day than on the days of the four weeks before it. Asked again of the same day it
 * answers the same, whatever the order in which the events came: days go by the time of recording.
 */
export async function findAnomalies(tx: Transaction, day: string): Promise<readonly Anomaly[]> {
  const found: Anomaly[] = [];
  for (const scope of budgetScopes) {
    // A goal has no history of its own.
    if (scope === "correlation") continue;
    const rows = await tx.query<{
      tenant_id: string;
      scope_id: string;
      observed: bigint;
      history: bigint[];
    }>(
      `WITH days AS (
          SELECT tenant_id, ${scopeColumns[scope]} AS scope_id, day, sum(amount_micros)::bigint AS micros
          FROM cost.usage
          WHERE is_counted AND ${scopeColumns[scope]} IS NOT NULL AND day BETWEEN $1::date - $2::integer AND $1::date
          GROUP BY 1, 2, 3)
        SELECT tenant_id, scope_id, sum(micros) FILTER (WHERE day = $1::date)::bigint AS observed,
          coalesce(array_agg(micros) FILTER (WHERE day < $1::date), '{}') AS history
        FROM days GROUP BY tenant_id, scope_id HAVING bool_or(day = $1::date) ORDER BY tenant_id, scope_id`,
      [day, historyDays],
    );
    for (const row of rows.rows) {
      const unusual = judgeWindow(row.history.map(BigInt), row.observed);
      if (unusual !== null) {
        found.push({ tenantId: row.tenant_id, scope, scopeId: row.scope_id, day, ...unusual });
      }
    }
  }
  return found;
}
