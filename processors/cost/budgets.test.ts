import { describe, expect, it } from "vitest";
import { findBudgets, findCrossed, parseBudgets } from "./budgets.ts";

const parse = (text: string) => {
  const parsed = parseBudgets("budgets.yaml", text);
  if (!parsed.ok) throw new Error(parsed.problems.join("\n"));
  return parsed.budgets;
};
const budget = (lines: string) => `currency: USD\nbudgets:\n  - ${lines.trim().replaceAll("\n", "\n    ")}\n`;
const row = {
  tenant_id: "acme",
  recorded_at: Date.parse("2026-11-30T23:59:59Z"),
  user_id: "ann",
  agent_id: null,
  model: "m",
  tool: null,
  correlation_id: "cor_1",
  amount_micros: 1n,
};

describe("a budget", () => {
  const [daily] = parse(budget("id: a\nscope: user\nperiod: day\nsoft_micros: 10\nhard_micros: 20"));
  if (daily === undefined) throw new Error("no budget");

  it("holds for each one of its scope, or for the one that it names", () => {
    expect(findBudgets([daily], row)).toMatchObject([
      { scopeId: "ann", tenantId: "acme", period: "2026-11-30" },
    ]);
    expect(findBudgets([{ ...daily, scopeId: "bob" }], row)).toEqual([]);
    expect(findBudgets([{ ...daily, tenant: "globex" }], row)).toEqual([]);
    expect(findBudgets([{ ...daily, scope: "agent" }], row)).toEqual([]);
    expect(findBudgets([{ ...daily, period: "month" }], row)).toMatchObject([{ period: "2026-11" }]);
  });

  it("is passed at its limit, once on the way up", () => {
    const kinds = (before: bigint, after: bigint) => findCrossed(daily, before, after).map((one) => one.kind);
    expect([kinds(0n, 9n), kinds(9n, 10n), kinds(10n, 11n), kinds(9n, 20n), kinds(25n, 5n)]).toEqual([
      [],
      ["soft"],
      [],
      ["soft", "hard"],
      [],
    ]);
  });

  it("is refused with file and line when it is not whole", () => {
    const problems = (text: string) => {
      const parsed = parseBudgets("budgets.yaml", text);
      return parsed.ok ? [] : parsed.problems;
    };
    expect(problems(budget("id: a\nscope: user\nperiod: day"))).toEqual([
      "budgets.yaml:3: budgets.0: give soft_micros, hard_micros or both",
    ]);
    expect(problems(budget("id: a\nscope: moon\nperiod: day\nsoft_micros: 1"))[0]).toMatch(
      /^budgets.yaml:4: /,
    );
    expect(problems(budget("id: a\nscope: user\nperiod: day\nsoft_micros: 3\nhard_micros: 2"))[0]).toMatch(
      /above hard_micros/,
    );
  });
});
