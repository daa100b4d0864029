import { z } from "zod";
import { constraintsSchema } from "../../../schemas/gate.ts";
import { durationMs } from "./duration.ts";
import { jsonValue } from "./parse-tools.ts";
import { factScopes } from "./policy.ts";
import type {
  ApprovalRule,
  BudgetRule,
  ConstraintRule,
  CountScope,
  FactRule,
  LabelRule,
  RateRule,
  RewriteRule,
  RiskLevels,
  RiskRule,
  When,
} from "./policy.ts";
import type { PolicyProblem } from "./problem.ts";
import { fieldName, label, message, priority, ruleId, whenShape } from "./rule-shapes.ts";
import type { Declared, YamlFile, YamlPath } from "./yaml-file.ts";
import { parseYamlFile } from "./yaml-file.ts";

const base = { id: ruleId, when: whenShape };
const spoken = { ...base, message, priority };
const scope = z.enum(["tenant", "session", "agent", "user", "tool"] as const satisfies readonly CountScope[]);
const count = z.number().int().min(1).max(1_000_000_000);
const withoutRisk = whenShape.refine((one) => one.riskAtLeast === null, {
  message: "points cannot depend on the score that they add up to",
  path: ["risk_at_least"],
});

const riskSchema = z.strictObject({
  levels: z
    .strictObject({
      medium: z.number().int().min(1).max(100),
      high: z.number().int().min(1).max(100),
      critical: z.number().int().min(1).max(100),
    })
    .refine((one) => one.medium < one.high && one.high < one.critical, "levels rise: medium, high, critical"),
  rules: z
    .array(z.strictObject({ id: ruleId, when: withoutRisk, points: z.number().int().min(1).max(100) }))
    .default([]),
});
const approvalsSchema = z.strictObject({
  rules: z.array(
    z
      .strictObject({ ...spoken, ttl: durationMs, by: z.enum(["approver", "user"]).default("approver") })
      .transform(({ ttl, ...one }): ApprovalRule => ({ ...one, ttlMs: ttl })),
  ),
});
const factValues = z.array(z.union([z.string(), z.number(), z.boolean()])).default([]);
const factsSchema = z.strictObject({
  rules: z.array(
    z
      .strictObject({
        ...spoken,
        fact: z
          .string()
          .regex(/^(?=.{1,128}$)[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$/, "a fact has the form `deploy.freeze`"),
        max_age: durationMs,
        deadline: durationMs,
        deny_when: factValues,
        warn_when: factValues,
        by: z.enum(factScopes).nullable().default(null),
      })
      .transform(({ max_age: maxAgeMs, deadline: deadlineMs, ...one }): FactRule => {
        const { deny_when: denyWhen, warn_when: warnWhen, ...rest } = one;
        return { ...rest, maxAgeMs, deadlineMs, denyWhen, warnWhen };
      }),
  ),
});
const constraintRules = z.strictObject({
  rules: z.array(
    z.strictObject({
      ...base,
      constraints: constraintsSchema.refine((one) => Object.keys(one).length > 0, "name at least one limit"),
    }),
  ),
});
const labelRules = z.strictObject({
  rules: z.array(z.strictObject({ ...base, labels: z.array(label).min(1) })),
});
const rewriteRules = z.strictObject({
  rules: z.array(
    z
      .strictObject({
        ...spoken,
        set: z.record(fieldName, jsonValue).default({}),
        remove: z.array(fieldName).default([]),
      })
      .refine((one) => Object.keys(one.set).length + one.remove.length > 0, "name what is set or removed")
      .refine((one) => !one.remove.some((field) => Object.hasOwn(one.set, field)), {
        message: "a field is either set or removed",
        path: ["remove"],
      }),
  ),
});
/** Chains of agents that people build have two or three; what would read this high starts itself. */
const automationDepthHighest = 32;
const limitsSchema = z.strictObject({
  automation_depth: z.number().int().min(0).max(automationDepthHighest).optional(),
  rates: z
    .array(
      z
        .strictObject({ ...spoken, scope, window: durationMs, limit: count })
        .transform(({ window: windowMs, ...one }): RateRule => ({ ...one, windowMs })),
    )
    .default([]),
  budgets: z
    .array(
      z
        .strictObject({
          ...spoken,
          scope,
          window: durationMs.optional(),
          limit: count,
          cost: count.default(1),
        })
        .transform(({ window, ...one }): BudgetRule => ({ ...one, windowMs: window ?? null })),
    )
    .default([]),
});

/** All rules that YAML files hold. */
export interface YamlRules {
  readonly risk: { readonly rules: readonly RiskRule[]; readonly levels: RiskLevels };
  readonly approvals: readonly ApprovalRule[];
  readonly facts: readonly FactRule[];
  readonly constraints: readonly ConstraintRule[];
  readonly labels: readonly LabelRule[];
  readonly rewrites: readonly RewriteRule[];
  readonly rates: readonly RateRule[];
  readonly budgets: readonly BudgetRule[];
  readonly automationDepthMax?: number;
}

/** A rule with its place, for checks that need other files. */
export interface PlacedRule {
  readonly id: string;
  readonly when: When;
  readonly file: string;
  readonly lineOf: (path: YamlPath) => number;
}

const defaultLevels: RiskLevels = { medium: 30, high: 60, critical: 85 };

/** The files of rules, as far as they can be read. */
export interface ParsedRules {
  readonly rules: YamlRules;
  readonly placed: readonly PlacedRule[];
  /** Ids of all rules, of those that are wrong too. */
  readonly ids: readonly (Declared & { readonly file: string })[];
  /** False when there may be a rule that sets a label and cannot be read. */
  readonly hasAllLabels: boolean;
}

/** Reads the files of rules; one that is absent is empty. */
export function parseRules(files: ReadonlyMap<string, string>, problems: PolicyProblem[]): ParsedRules {
  const placed: PlacedRule[] = [];
  const ids: (Declared & { readonly file: string })[] = [];
  function read<T>(file: string, schema: z.ZodType<T>): YamlFile<T> | null {
    const text = files.get(file);
    if (text === undefined) return null;
    return parseYamlFile(file, text, schema, problems);
  }
  function list<T extends { readonly id: string; readonly when: When }, K extends string>(
    parsed: YamlFile<Readonly<Record<K, readonly T[]>>> | null,
    key: K,
  ): readonly T[] {
    if (parsed === null) return [];
    ids.push(...parsed.declared(key, "id").map((one) => ({ ...one, file: parsed.file })));
    const rules = parsed.value[key];
    rules.forEach(({ id, when }, index) => {
      placed.push({ id, when, file: parsed.file, lineOf: (path) => parsed.lineOf([key, index, ...path]) });
    });
    return rules;
  }
  const risk = read("risk.yaml", riskSchema);
  const limits = read("limits.yaml", limitsSchema);
  const labels = read("labels.yaml", labelRules);
  const rules: YamlRules = {
    risk: { levels: risk?.value.levels ?? defaultLevels, rules: list<RiskRule, "rules">(risk, "rules") },
    approvals: list(read("approvals.yaml", approvalsSchema), "rules"),
    facts: list(read("facts.yaml", factsSchema), "rules"),
    constraints: list<ConstraintRule, "rules">(read("constraints.yaml", constraintRules), "rules"),
    labels: list<LabelRule, "rules">(labels, "rules"),
    rewrites: list<RewriteRule, "rules">(read("rewrites.yaml", rewriteRules), "rules"),
    rates: list<RateRule, "rates">(limits, "rates"),
    budgets: list<BudgetRule, "budgets">(limits, "budgets"),
    ...(limits?.value.automation_depth === undefined
      ? {}
      : { automationDepthMax: limits.value.automation_depth }),
  };
  const hasAllLabels = files.has("labels.yaml") ? labels?.isWhole === true : true;
  return { rules, placed, ids, hasAllLabels };
}
