import { expect, it } from "vitest";
import { toBudgetFacts } from "./budget-facts.ts";
import type { Budget } from "./budgets.ts";

const budget: Budget = {
  id: "month",
  tenant: "*",
  scope: "tenant",
  scopeId: "*",
  period: "month",
  softMicros: 10n,
  hardMicros: 20n,
};
const line = (spent: bigint, period = "2026-11") => ({
  budget_id: "month",
  tenant_id: "acme",
  scope: "tenant",
  scope_id: "acme",
  period,
  spent_micros: spent,
  soft_micros: 10n,
  hard_micros: 20n,
});
const values = (all: readonly Budget[], lines: readonly ReturnType<typeof line>[]) =>
  toBudgetFacts(all, lines, "acme", "2026-11-30").map((one) => `${one.name} ${one.value}`);

it("tells the gate how a tenant's budget stands in the period that runs", () => {
  expect(
    [[], [line(9n)], [line(10n)], [line(20n)], [line(20n, "2026-10")]].map((one) => values([budget], one)),
  ).toEqual([
    ["budget.month within"],
    ["budget.month within"],
    ["budget.month soft"],
    ["budget.month hard"],
    ["budget.month within"],
  ]);
});

it("tells nothing that would stop a tenant for one of its users, and nothing of other tenants", () => {
  expect(
    values(
      [
        { ...budget, scope: "user" },
        { ...budget, tenant: "globex" },
      ],
      [],
    ),
  ).toEqual([]);
  expect(values([{ ...budget, scope: "user", scopeId: "ann" }], [])).toEqual(["budget.month within"]);
});
