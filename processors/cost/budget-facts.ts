import type { Budget } from "./budgets.ts";
import type { BudgetLine } from "./queries.ts";

/** A fact that rules of a policy can name: `budget.<id>` is `within`, `soft` or `hard`. */
export interface BudgetFact {
  readonly name: string;
  readonly value: "within" | "soft" | "hard";
}

/**
 * What the gate is told of a tenant's budgets on a UTC day. Only budgets of the whole tenant, or of one scope that they
 * name: a dated fact is a tenant's, and "some user is past his limit" would stop all of them.
 */
export function toBudgetFacts(
  budgets: readonly Budget[],
  lines: readonly BudgetLine[],
  tenantId: string,
  day: string,
): readonly BudgetFact[] {
  return budgets
    .filter((one) => one.tenant === "*" || one.tenant === tenantId)
    .filter((one) => one.scope === "tenant" || one.scopeId !== "*")
    .map((budget) => {
      const period = budget.period === "day" ? day : day.slice(0, 7);
      const line = lines.find(
        (one) => one.budget_id === budget.id && one.tenant_id === tenantId && one.period === period,
      );
      return { name: `budget.${budget.id}`, value: toValue(budget, line?.spent_micros ?? 0n) };
    });
}

function toValue({ softMicros, hardMicros }: Budget, spent: bigint): BudgetFact["value"] {
  if (hardMicros !== null && spent >= hardMicros) return "hard";
  return softMicros !== null && spent >= softMicros ? "soft" : "within";
}
