import { z } from "zod";
import type { EpochMs } from "../../schemas/generated/types.ts";
import type { UsageRow } from "./usage-row.ts";
import { toDay } from "./usage-row.ts";
import { parseYamlList } from "../kit/yaml-list.ts";

/** What a budget may be set for. */
export const budgetScopes = ["tenant", "agent", "user", "model", "tool", "correlation"] as const;
export type BudgetScope = (typeof budgetScopes)[number];

/** The column of usage that a scope is found by. */
export const scopeColumns = {
  tenant: "tenant_id",
  agent: "agent_id",
  user: "user_id",
  model: "model",
  tool: "tool",
  correlation: "correlation_id",
} as const satisfies Record<BudgetScope, string>;

/** A limit on what is spent, per UTC day or month. Amounts are millionths of the price list's currency. */
export interface Budget {
  readonly id: string;
  /** `*`: each tenant for itself. */
  readonly tenant: string;
  readonly scope: BudgetScope;
  /** `*`: each one for itself. */
  readonly scopeId: string;
  readonly period: "day" | "month";
  readonly softMicros: bigint | null;
  readonly hardMicros: bigint | null;
}

/** What came of the file of budgets. */
export type BudgetsOutcome =
  | { readonly ok: true; readonly budgets: readonly Budget[] }
  | { readonly ok: false; readonly problems: readonly string[] };

const amount = z
  .number()
  .int("an amount is a whole number of millionths")
  .min(1)
  .max(Number.MAX_SAFE_INTEGER);
const fileSchema = z.strictObject({
  currency: z.literal("USD"),
  note: z.string().optional(),
  budgets: z.array(
    z
      .strictObject({
        id: z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, "an id has lower case letters, digits and dashes"),
        tenant: z.string().min(1).default("*"),
        scope: z.enum(budgetScopes),
        scope_id: z.string().min(1).default("*"),
        period: z.enum(["day", "month"]),
        soft_micros: amount.optional(),
        hard_micros: amount.optional(),
      })
      .refine(
        (one) => one.soft_micros !== undefined || one.hard_micros !== undefined,
        "give soft_micros, hard_micros or both",
      )
      .refine(
        (one) =>
          one.soft_micros === undefined ||
          one.hard_micros === undefined ||
          one.soft_micros <= one.hard_micros,
        "soft_micros is above hard_micros",
      ),
  ),
});

/** Reads the file of budgets; ids are used once. */
export function parseBudgets(file: string, text: string): BudgetsOutcome {
  const parsed = parseYamlList<z.output<typeof fileSchema>>(file, text, fileSchema);
  if (!parsed.ok) return parsed;
  const { value, at } = parsed.list;
  const problems = value.budgets.flatMap((one, index) =>
    value.budgets.findIndex((other) => other.id === one.id) < index
      ? [`${at(["budgets", index])}: the id \`${one.id}\` is there twice`]
      : [],
  );
  if (problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    budgets: value.budgets.map((one) => ({
      id: one.id,
      tenant: one.tenant,
      scope: one.scope,
      scopeId: one.scope_id,
      period: one.period,
      softMicros: one.soft_micros === undefined ? null : BigInt(one.soft_micros),
      hardMicros: one.hard_micros === undefined ? null : BigInt(one.hard_micros),
    })),
  };
}

/** The part of a row that budgets look at. */
export type Spending = Pick<
  UsageRow,
  "tenant_id" | "recorded_at" | "user_id" | "agent_id" | "model" | "tool" | "correlation_id" | "amount_micros"
>;

/** Whose budget of which period a row counts in. */
export interface BudgetPlace {
  readonly budget: Budget;
  readonly tenantId: string;
  readonly scopeId: string;
  readonly period: string;
}

/** Every budget that a row counts in. */
export function findBudgets(budgets: readonly Budget[], row: Spending): BudgetPlace[] {
  return budgets.flatMap((budget) => {
    if (budget.tenant !== "*" && budget.tenant !== row.tenant_id) return [];
    const scopeId = toScopeId(budget.scope, row);
    if (scopeId === null || (budget.scopeId !== "*" && budget.scopeId !== scopeId)) return [];
    return [{ budget, tenantId: row.tenant_id, scopeId, period: toPeriod(budget.period, row.recorded_at) }];
  });
}

/** Which limits a budget passed when it went from `before` to `after`. */
export function findCrossed(
  budget: Budget,
  before: bigint,
  after: bigint,
): { readonly kind: "soft" | "hard"; readonly limitMicros: bigint }[] {
  const limits = [
    { kind: "soft" as const, limitMicros: budget.softMicros },
    { kind: "hard" as const, limitMicros: budget.hardMicros },
  ];
  return limits.flatMap(({ kind, limitMicros }) =>
    limitMicros !== null && before < limitMicros && after >= limitMicros ? [{ kind, limitMicros }] : [],
  );
}

function toScopeId(scope: BudgetScope, row: Spending): string | null {
  switch (scope) {
    case "tenant":
      return row.tenant_id;
    case "agent":
      return row.agent_id;
    case "user":
      return row.user_id;
    case "model":
      return row.model;
    case "tool":
      return row.tool;
    case "correlation":
      return row.correlation_id;
  }
}

function toPeriod(period: Budget["period"], atMs: EpochMs): string {
  const day = toDay(atMs);
  return period === "day" ? day : day.slice(0, 7);
}
