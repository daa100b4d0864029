import { z } from "zod";
import { constraintsSchema } from "../../../schemas/gate.ts";
import type { Json, JsonObject } from "../../../schemas/gate.ts";
import { compileJsonSchema, noInputProblems } from "./json-schema.ts";
import type { ToolEntry } from "./policy.ts";
import type { PolicyProblem } from "./problem.ts";
import { effectClasses, fieldName, toolPattern } from "./rule-shapes.ts";
import { findTool, patternsMeet } from "./tool-pattern.ts";
import { parseYamlFile } from "./yaml-file.ts";

const dataClasses = ["public", "internal", "confidential", "secret"] as const;
const resourceKinds = ["command", "path", "patch", "url", "sql", "text"] as const;

/** Fields that say where and how a command runs. The plan has to hold them, or an approval would stand for another run. */
const runFields: readonly string[] = ["workdir", "cwd", "working_directory", "shell", "env"];

const toolsSchema = z.strictObject({
  tools: z
    .array(
      z
        .strictObject({
          tool: toolPattern.refine(
            (name) => name !== "*",
            "a tool that is not listed is unknown; name its server",
          ),
          effect: z.enum(effectClasses),
          data_class: z.enum(dataClasses),
          action: z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/, "an action has the form `run`"),
          resource: z
            .strictObject({
              kind: z.enum(resourceKinds),
              fields: z.array(fieldName).default([]),
              required: z.boolean().default(true),
            })
            .refine((one) => one.fields.length > 0 || !one.required, "name the input fields of the resource")
            .default({ kind: "text", fields: [], required: false }),
          volatile: z.array(fieldName).default([]),
          constraints: constraintsSchema.default({}),
          schema: z.record(z.string(), z.unknown()).optional(),
        })
        .refine((one) => !one.volatile.some((field) => one.resource.fields.includes(field)), {
          message: "a field that names the resource is never volatile",
          path: ["volatile"],
        })
        .refine(
          (one) =>
            one.resource.kind !== "command" || !one.volatile.some((field) => runFields.includes(field)),
          {
            message: "a field that says where or how a command runs is never volatile",
            path: ["volatile"],
          },
        ),
    )
    .min(1),
});

/** The catalogue, with names to ask it by. */
export interface ToolCatalogue {
  readonly entries: readonly ToolEntry[];
  /** False: `entries` lacks those that are wrong; `hasTool` knows their names. */
  readonly isWhole: boolean;
  /** Whether a tool name or pattern of a rule can mean a tool of the catalogue. */
  readonly hasTool: (pattern: string) => boolean;
  /** The line of an entry, from its place in the list. */
  readonly lineOf: (index: number, key: string) => number;
}

/** `tools.yaml`; null when nothing of it can be read. */
export function parseTools(file: string, text: string, problems: PolicyProblem[]): ToolCatalogue | null {
  const parsed = parseYamlFile(file, text, toolsSchema, problems);
  if (parsed === null) return null;
  const { tools } = parsed.value;
  const names = new Set<string>();
  const declared = parsed.declared("tools", "tool");
  for (const { name, line } of declared) {
    if (names.has(name)) problems.push({ file, line, text: `${name}: the tool is there twice` });
    names.add(name);
  }
  const entries = tools.map((one, index): ToolEntry => {
    const report = (key: string, problem: string): void => {
      problems.push({ file, line: parsed.lineOf(["tools", index, key]), text: `${one.tool}: ${problem}` });
    };
    const schema = one.schema === undefined ? null : compileJsonSchema(one.schema as JsonObject);
    if (schema?.ok === false) report("schema", `the schema is refused: ${schema.problem}`);
    else if (schema !== null && one.tool.includes("*"))
      report("schema", "a wildcard has no schema of its own");
    return {
      tool: one.tool,
      effect: one.effect,
      dataClass: one.data_class,
      action: one.action,
      resource: one.resource,
      volatile: one.volatile,
      constraints: one.constraints,
      inputProblems: schema?.ok === true ? schema.inputProblems : noInputProblems,
      ...toKnownFields(one.schema),
    };
  });
  return {
    entries,
    isWhole: parsed.isWhole,
    hasTool: (pattern) => declared.some(({ name }) => patternsMeet(pattern, name)),
    lineOf: (index, key) => parsed.lineOf(["tools", index, key]),
  };
}

const headSchema = z.strictObject({
  revision: z
    .string()
    .regex(/^policy@\d{4}-\d{2}-\d{2}\.\d{1,9}$/, "a revision has the form `policy@2026-01-31.1`"),
  description: z.string().max(2000).default(""),
  local_tools: z.array(toolPattern).default([]),
});

export interface BundleHead {
  readonly revision: string;
  readonly localTools: readonly string[];
}

/** `bundle.yaml`. Local tools are answered without the gate, so they have no effect. */
export function parseHead(
  file: string,
  text: string,
  tools: ToolCatalogue | null,
  problems: PolicyProblem[],
): BundleHead | null {
  const parsed = parseYamlFile(file, text, headSchema, problems);
  if (parsed === null) return null;
  const { revision, local_tools: localTools } = parsed.value;
  localTools.forEach((name, index) => {
    const report = (problem: string): void => {
      problems.push({ file, line: parsed.lineOf(["local_tools", index]), text: `${name}: ${problem}` });
    };
    if (name.includes("*")) report("a local tool is named in full");
    else if (tools !== null) {
      const entry = findTool(tools.entries, name);
      if (entry === null) {
        if (!tools.hasTool(name)) report("no tool has this name");
      } else if (entry.effect !== "none") report(`a local tool has the effect none, and not ${entry.effect}`);
    }
  });
  return { revision, localTools };
}

/** A JSON value, as YAML can write one. */
export const jsonValue: z.ZodType<Json> = z.json();

/** What the schema names at the top, and in the objects of lists there. */
function toKnownFields(schema: unknown): Pick<ToolEntry, "knownFields"> {
  const top = toProperties(schema);
  const names = Object.entries(top).flatMap(([name, inner]) => [
    name,
    ...Object.keys(toProperties(toMember(inner, "items"))).map((field) => `${name}[].${field}`),
  ]);
  return names.length === 0 ? {} : { knownFields: new Set(names) };
}

const toMember = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as { readonly [key: string]: unknown })[name]
    : undefined;

function toProperties(schema: unknown): { readonly [name: string]: unknown } {
  const properties = toMember(schema, "properties");
  return typeof properties === "object" && properties !== null ? { ...properties } : {};
}
