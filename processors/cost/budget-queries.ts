import type { Transaction } from "../kit/transaction.ts";
import type { Budget } from "./budgets.ts";
import { findCrossed } from "./budgets.ts";

/** A budget in one of its periods. */
export interface BudgetLine {
  readonly budget_id: string;
  readonly tenant_id: string;
  readonly scope: string;
  readonly scope_id: string;
  readonly period: string;
  readonly spent_micros: bigint;
  readonly soft_micros: bigint | null;
  readonly hard_micros: bigint | null;
}

/** Budgets in the periods that a day belongs to, the fullest first, with the limits of when they last were spent from. */
export async function loadBudgets(
  tx: Transaction,
  question: { readonly day: string; readonly tenantId: string | null },
): Promise<readonly BudgetLine[]> {
  const found = await tx.query<BudgetLine>(
    `SELECT ${budgetColumns} FROM cost.budget_state
      WHERE period = ANY (ARRAY[$1, left($1, 7)]) AND ($2::text IS NULL OR tenant_id = $2)
      ORDER BY spent_micros::numeric / coalesce(hard_micros, soft_micros) DESC, budget_id, tenant_id, scope_id`,
    [question.day, question.tenantId],
  );
  return found.rows;
}

/**
 * Those of these budgets that are past a limit in the periods that a day belongs to. The limits are those handed in: a
 * limit that was lowered holds before anything is spent again.
 */
export async function loadPassedBudgets(
  tx: Transaction,
  budgets: readonly Budget[],
  question: { readonly day: string; readonly tenantId: string | null },
): Promise<readonly BudgetLine[]> {
  const found = await tx.query<BudgetLine>(
    `SELECT ${budgetColumns} FROM cost.budget_state AS s
      JOIN unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
        AS b(id, budget_tenant, budget_scope, budget_scope_id, least_micros)
        ON b.id = s.budget_id AND b.budget_scope = s.scope AND b.budget_tenant IN ('*', s.tenant_id)
          AND b.budget_scope_id IN ('*', s.scope_id)
      WHERE period = ANY (ARRAY[$1, left($1, 7)]) AND ($2::text IS NULL OR tenant_id = $2)
        AND spent_micros >= least_micros
      ORDER BY spent_micros::numeric / least_micros DESC, budget_id, tenant_id, scope_id`,
    [
      question.day,
      question.tenantId,
      budgets.map((one) => one.id),
      budgets.map((one) => one.tenant),
      budgets.map((one) => one.scope),
      budgets.map((one) => one.scopeId),
      budgets.map(({ softMicros, hardMicros }) => (softMicros ?? hardMicros ?? 0n).toString()),
    ],
  );
  return found.rows;
}

const budgetColumns = "budget_id, tenant_id, scope, scope_id, period, spent_micros, soft_micros, hard_micros";

/** A limit that a budget is past. */
export interface PassedLimit {
  readonly budget: Budget;
  readonly line: BudgetLine;
  readonly kind: "soft" | "hard";
  readonly limitMicros: bigint;
}

/**
 * Limits that were passed by being lowered: nothing was spent since, so that the ledger did not say it. A scope that is
 * stopped by its budget spends nothing more.
 */
export function findLowered(
  budgets: readonly Budget[],
  lines: readonly BudgetLine[],
): readonly PassedLimit[] {
  return lines.flatMap((line) => {
    const budget = budgets.find((one) => one.id === line.budget_id);
    if (budget === undefined) return [];
    return findCrossed(budget, 0n, line.spent_micros)
      .filter(
        ({ kind, limitMicros }) => limitMicros !== (kind === "soft" ? line.soft_micros : line.hard_micros),
      )
      .map((crossed) => ({ budget, line, ...crossed }));
  });
}
