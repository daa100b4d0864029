import type { Budget } from "./budgets.ts";
import type { BudgetLine } from "./budget-queries.ts";

/** How a budget stands. */
export type BudgetState = "within" | "soft" | "hard";

/** A fact that rules of a policy can name: `budget.<id>`, with one value for the tenant, or one by user, agent or tool. */
export type BudgetFact = { readonly name: string } & (
  | { readonly value: BudgetState }
  | {
      readonly by: "user" | "agent" | "tool";
      readonly otherwise: "within";
      readonly values: readonly { readonly id: string; readonly value: BudgetState }[];
    }
);

/** Scopes that can be told at once; the gate takes no more. */
const maxScopes = 2_000;

/**
 * What the gate is told of a tenant's budgets on a UTC day. Budgets of users, agents and tools name those that are past a
 * limit; of models and goals only those of one that the budget names, since the gate knows neither when it decides.
 * Throws when more scopes are past their hard limit than can be told: rules that wait for the fact then put calls off.
 */
export function toBudgetFacts(
  budgets: readonly Budget[],
  lines: readonly BudgetLine[],
  tenantId: string,
  day: string,
): readonly BudgetFact[] {
  return budgets
    .filter((one) => one.tenant === "*" || one.tenant === tenantId)
    .flatMap((budget): BudgetFact[] => {
      const period = budget.period === "day" ? day : day.slice(0, 7);
      const name = `budget.${budget.id}`;
      const own = lines.filter(
        (one) => one.budget_id === budget.id && one.tenant_id === tenantId && one.period === period,
      );
      const { scope } = budget;
      switch (scope) {
        case "user":
        case "agent":
        case "tool":
          return [{ name, by: scope, otherwise: "within", values: toValues(budget, own) }];
        case "tenant":
          return [{ name, value: toState(budget, own[0]?.spent_micros ?? 0n) }];
        case "model":
        case "correlation":
          return budget.scopeId === "*" ? [] : [{ name, value: toState(budget, own[0]?.spent_micros ?? 0n) }];
      }
    });
}

function toValues(
  budget: Budget,
  lines: readonly BudgetLine[],
): readonly { readonly id: string; readonly value: BudgetState }[] {
  const past = lines.flatMap((one) => {
    const value = toState(budget, one.spent_micros);
    return value === "within" ? [] : [{ id: one.scope_id, value }];
  });
  const hard = past.filter(({ value }) => value === "hard");
  if (hard.length > maxScopes) {
    throw new RangeError(
      `${String(hard.length)} of \`${budget.id}\` are past their hard limit, more than the gate can be told`,
    );
  }
  return [...hard, ...past.filter(({ value }) => value === "soft")].slice(0, maxScopes);
}

function toState({ softMicros, hardMicros }: Budget, spent: bigint): BudgetState {
  if (hardMicros !== null && spent >= hardMicros) return "hard";
  return softMicros !== null && spent >= softMicros ? "soft" : "within";
}
