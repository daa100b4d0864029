import { z } from "zod";
import type { GateRequest, ReasonCode } from "../../../schemas/gate.ts";
import { decisions, gateRequestSchema, reasonCodes } from "../../../schemas/gate.ts";
import type { DecisionName } from "../../../schemas/gate.ts";
import type { Facts } from "../facts-of-call.ts";
import { durationMs } from "./duration.ts";
import { jsonValue } from "./parse-tools.ts";
import type { PolicyProblem } from "./problem.ts";
import { compareTexts } from "./problem.ts";
import { label } from "./rule-shapes.ts";
import type { YamlFile } from "./yaml-file.ts";
import { parseYamlFile } from "./yaml-file.ts";

/** One example of a bundle: a request, what is known, and the answer that the bundle owes. */
export interface PolicyCase {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly request: GateRequest;
  readonly facts: Facts;
  readonly expect: {
    readonly decision: DecisionName;
    readonly reason: ReasonCode | null;
    /** Rules that have to be among those that matched. */
    readonly rules: readonly string[];
  };
}

/** The moment of all cases; a bundle's examples read no clock. */
const caseTimeMs = Date.UTC(2026, 0, 5, 12);

const requestDefaults = {
  runtime: "claude-code",
  session_id: "session-of-the-case",
  working_directory: "/home/dev/project",
};
const requestShape = z.preprocess(
  (given) => (typeof given === "object" && given !== null ? { ...requestDefaults, ...given } : given),
  gateRequestSchema,
);

const factsShape = z
  .strictObject({
    environment: z.string().min(1).default("development"),
    tenant: z.enum(["active", "frozen"]).default("active"),
    labels: z.array(label).default([]),
    open_approvals: z.number().int().min(0).default(0),
    /** How long the call has been deferred. */
    deferred_for: durationMs.optional(),
    revoked: z.boolean().default(false),
    counters: z.record(z.string(), z.number().int().min(0)).default({}),
    dated: z.record(z.string(), z.strictObject({ value: jsonValue, age: durationMs.optional() })).default({}),
  })
  .transform((one): Facts => ({
    nowMs: caseTimeMs,
    environment: one.environment,
    tenant: { id: "tenant-of-the-case", state: one.tenant, version: 1 },
    session: {
      version: 1,
      labels: [...new Set(one.labels)].sort(compareTexts),
      openApprovals: one.open_approvals,
      deferredSinceMs: one.deferred_for === undefined ? null : caseTimeMs - one.deferred_for,
    },
    approval: null,
    isRevoked: one.revoked,
    counters: one.counters,
    dated: Object.fromEntries(
      Object.entries(one.dated).map(([name, { value, age }]) => [
        name,
        { value, atMs: caseTimeMs - (age ?? 0) },
      ]),
    ),
  }));

const casesSchema = z.strictObject({
  cases: z.array(
    z.strictObject({
      name: z.string().min(1).max(200),
      request: requestShape,
      facts: factsShape.prefault({}),
      expect: z.strictObject({
        decision: z.enum(decisions),
        reason_code: z
          .string()
          .refine(
            (code): code is ReasonCode => Object.hasOwn(reasonCodes, code),
            "the reason code is not in the table",
          )
          .optional(),
        rules: z.array(z.string().min(1)).default([]),
      }),
    }),
  ),
});

/** The cases of all files in `cases/`, in the order of files and lines. */
export function parseCases(
  files: ReadonlyMap<string, string>,
  names: { readonly hasLabel: (name: string) => boolean },
  problems: PolicyProblem[],
): readonly PolicyCase[] {
  const places = new Map<string, string>();
  return [...files.keys()]
    .filter((file) => file.startsWith("cases/"))
    .sort(compareTexts)
    .flatMap((file) => {
      const parsed = parseYamlFile(file, files.get(file) ?? "", casesSchema, problems);
      return parsed === null ? [] : toCases(parsed, places, names, problems);
    });
}

function toCases(
  { file, value, lineOf }: YamlFile<z.output<typeof casesSchema>>,
  places: Map<string, string>,
  names: { readonly hasLabel: (name: string) => boolean },
  problems: PolicyProblem[],
): PolicyCase[] {
  return value.cases.map(({ name, request, facts, expect }, index) => {
    const line = lineOf(["cases", index]);
    const other = places.get(name);
    if (other === undefined) places.set(name, `${file}:${String(line)}`);
    else problems.push({ file, line, text: `the case \`${name}\` is there twice: ${other}` });
    for (const one of facts.session.labels) {
      if (names.hasLabel(one)) continue;
      problems.push({
        file,
        line: lineOf(["cases", index, "facts", "labels"]),
        text: `${name}: no rule sets the label \`${one}\``,
      });
    }
    const { decision, reason_code: reason = null, rules } = expect;
    return { name, file, line, request, facts, expect: { decision, reason, rules } };
  });
}
