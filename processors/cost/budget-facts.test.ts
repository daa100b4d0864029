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
const factsOf = (all: readonly Budget[], lines: readonly ReturnType<typeof line>[]) =>
  toBudgetFacts(all, lines, "acme", "2026-11-30");
const values = (all: readonly Budget[], lines: readonly ReturnType<typeof line>[]) =>
  factsOf(all, lines).map((one) => ("value" in one ? `${one.name} ${one.value}` : one));

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

it("tells of users, agents and tools those that are past a limit, so that one stops no other", () => {
  const of = (id: string, spent: bigint) => ({ ...line(spent), scope: "user", scope_id: id });
  const lines = [of("ann", 20n), of("bob", 9n), of("cid", 11n)];
  expect(values([{ ...budget, scope: "user" }], lines)).toEqual([
    {
      name: "budget.month",
      by: "user",
      otherwise: "within",
      values: [
        { id: "ann", value: "hard" },
        { id: "cid", value: "soft" },
      ],
    },
  ]);
  expect(values([{ ...budget, scope: "tool" }], [])).toMatchObject([{ by: "tool", values: [] }]);
});

it("tells nothing of other tenants, nor of goals and models that the gate does not know", () => {
  expect(
    values(
      [
        { ...budget, tenant: "globex" },
        { ...budget, scope: "correlation" },
        { ...budget, scope: "model" },
      ],
      [],
    ),
  ).toEqual([]);
  expect(values([{ ...budget, scope: "model", scopeId: "large" }], [])).toEqual(["budget.month within"]);
});

it("tells nothing at all when more are past their hard limit than can be told", () => {
  const many = Array.from({ length: 2_001 }, (_, n) => ({
    ...line(20n),
    scope: "user",
    scope_id: String(n),
  }));
  expect(() => factsOf([{ ...budget, scope: "user" }], many)).toThrow(/more than the gate can be told/);
});
