import type { Transaction } from "../kit/transaction.ts";
import type { Budget, BudgetPlace } from "./budgets.ts";
import { findBudgets, findCrossed, scopeColumns } from "./budgets.ts";
import type { Movement } from "./store.ts";

/** A limit that a budget passed just now. */
export interface Crossing {
  readonly place: BudgetPlace;
  readonly kind: "soft" | "hard";
  readonly limitMicros: bigint;
  readonly spentMicros: bigint;
}

interface Sum {
  readonly place: BudgetPlace;
  micros: bigint;
}

interface StateRow {
  readonly budget_id: string;
  readonly tenant_id: string;
  readonly scope_id: string;
  readonly period: string;
  readonly spent_micros: bigint;
  readonly is_new: boolean;
  /** The limits are others than those that it was spent from before. */
  readonly is_limited_anew: boolean;
}

/**
 * Adds what moved to the budgets that it counts in, and answers the limits that were passed by it. A budget's row is locked
 * up to the commit, so that of two batches one sees the limit passed; rows are locked in the order of their keys.
 */
export async function addToBudgets(
  tx: Transaction,
  budgets: readonly Budget[],
  movements: readonly Movement[],
): Promise<readonly Crossing[]> {
  const sums = sumUp(budgets, movements);
  if (sums.size === 0) return [];
  const all = [...sums.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
  const written = await tx.query<StateRow>({
    name: "cost-add-to-budgets",
    text: `INSERT INTO budget_state AS s (budget_id, tenant_id, scope, scope_id, period, spent_micros, soft_micros, hard_micros)
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
      ON CONFLICT (budget_id, tenant_id, scope_id, period) DO UPDATE SET spent_micros = s.spent_micros + excluded.spent_micros,
        soft_micros = excluded.soft_micros, hard_micros = excluded.hard_micros
      RETURNING budget_id, tenant_id, scope_id, period, spent_micros, xmax = 0 AS is_new,
        -- The row as it was when the statement began. Two batches that both find the old limits say one event.
        NOT EXISTS (SELECT FROM budget_state AS o
          WHERE (o.budget_id, o.tenant_id, o.scope_id, o.period) = (s.budget_id, s.tenant_id, s.scope_id, s.period)
            AND o.soft_micros IS NOT DISTINCT FROM s.soft_micros
            AND o.hard_micros IS NOT DISTINCT FROM s.hard_micros) AS is_limited_anew`,
    values: [
      all.map(({ place }) => place.budget.id),
      all.map(({ place }) => place.tenantId),
      all.map(({ place }) => place.budget.scope),
      all.map(({ place }) => place.scopeId),
      all.map(({ place }) => place.period),
      all.map(({ micros }) => micros.toString()),
      all.map(({ place }) => place.budget.softMicros?.toString() ?? null),
      all.map(({ place }) => place.budget.hardMicros?.toString() ?? null),
    ],
  });
  const crossings: Crossing[] = [];
  let isAnyZero = false;
  for (const row of written.rows) {
    const sum = sums.get(JSON.stringify([row.budget_id, row.tenant_id, row.scope_id, row.period]));
    if (sum === undefined) continue;
    // A budget that is new to a period in which something was spent before starts with all of it.
    const after = row.is_new ? await countAll(tx, sum.place) : row.spent_micros;
    const before = row.is_new || row.is_limited_anew ? 0n : after - sum.micros;
    isAnyZero ||= after === 0n;
    for (const crossed of findCrossed(sum.place.budget, before, after)) {
      crossings.push({ place: sum.place, ...crossed, spentMicros: after });
    }
  }
  if (isAnyZero) await dropEmpty(tx, all);
  return crossings;
}

/** Whether a row of 0 is there would tell of the order in which things came. */
async function dropEmpty(tx: Transaction, all: readonly Sum[]): Promise<void> {
  await tx.query({
    name: "cost-drop-empty-budgets",
    text: `DELETE FROM budget_state AS s USING unnest($1::text[], $2::text[], $3::text[], $4::text[])
        AS k(budget_id, tenant_id, scope_id, period)
      WHERE (s.budget_id, s.tenant_id, s.scope_id, s.period) = (k.budget_id, k.tenant_id, k.scope_id, k.period)
        AND s.spent_micros = 0`,
    values: [
      all.map(({ place }) => place.budget.id),
      all.map(({ place }) => place.tenantId),
      all.map(({ place }) => place.scopeId),
      all.map(({ place }) => place.period),
    ],
  });
}

function sumUp(budgets: readonly Budget[], movements: readonly Movement[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const { row, sign } of movements) {
    if (row.amount_micros === 0n) continue;
    for (const place of findBudgets(budgets, row)) {
      const key = JSON.stringify([place.budget.id, place.tenantId, place.scopeId, place.period]);
      const sum = sums.get(key) ?? { place, micros: 0n };
      sum.micros += sign * row.amount_micros;
      sums.set(key, sum);
    }
  }
  return sums;
}

async function countAll(
  tx: Transaction,
  { budget, tenantId, scopeId, period }: BudgetPlace,
): Promise<bigint> {
  const from = budget.period === "day" ? period : `${period}-01`;
  const counted = await tx.query<{ spent_micros: bigint }>({
    text: `UPDATE budget_state SET spent_micros = (SELECT coalesce(sum(amount_micros), 0)::bigint FROM usage
        WHERE tenant_id = $2 AND ${scopeColumns[budget.scope]} = $3 AND is_counted
          AND day >= $5::date AND day < $5::date + $6::interval)
      WHERE budget_id = $1 AND tenant_id = $2 AND scope_id = $3 AND period = $4 RETURNING spent_micros`,
    values: [budget.id, tenantId, scopeId, period, from, budget.period === "day" ? "1 day" : "1 month"],
  });
  return counted.rows[0]?.spent_micros ?? 0n;
}
