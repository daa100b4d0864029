import { RE2JS } from "re2js";
import { z } from "zod";
import type { SignalRule, SignalTest, ToolEntry } from "./policy.ts";
import type { PolicyProblem } from "./problem.ts";
import type { RuleIds } from "./rule-ids.ts";
import { fieldName, ruleId, toolPattern } from "./rule-shapes.ts";
import { patternsMeet } from "./tool-pattern.ts";
import type { ToolCatalogue } from "./parse-tools.ts";
import { parseYamlFile } from "./yaml-file.ts";

const pattern = z
  .string()
  .min(1)
  .max(4096)
  .transform((source, context) => {
    try {
      return RE2JS.compile(source);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      context.addIssue({ code: "custom", message: `the pattern is not RE2: ${why}` });
      return z.NEVER;
    }
  });
const mode = z.enum(["read", "write", "any"]);
const testKeys = [
  ...["field", "fields", "field_present", "any_text_matches", "url_host_matches", "url_scheme_other_than"],
  ...["path_matches", "outside_workspace", "command"],
] as const;

const signalShape = z
  .strictObject({
    id: ruleId,
    tools: z.array(toolPattern).min(1).default(["*"]),
    field: fieldName.optional(),
    fields: z.array(fieldName).min(1).optional(),
    matches: pattern.optional(),
    field_present: z.array(fieldName).min(1).optional(),
    any_text_matches: pattern.optional(),
    url_host_matches: pattern.optional(),
    url_scheme_other_than: z
      .array(z.string().regex(/^[a-z][a-z0-9+.-]*$/, "a scheme has the form `https`"))
      .min(1)
      .optional(),
    path_matches: z
      .strictObject({ read: pattern.optional(), write: pattern.optional(), any: pattern.optional() })
      .refine((one) => Object.keys(one).length === 1, "name one of read, write, any")
      .optional(),
    outside_workspace: mode.optional(),
    command: z
      .strictObject({
        any: z
          .array(z.string().regex(/^\S+( \S+)*$/, "words of a command stand with one blank between"))
          .min(1),
        option: pattern.optional(),
      })
      .optional(),
  })
  .refine((one) => (one.matches !== undefined) === (one.field !== undefined || one.fields !== undefined), {
    message: "`field` or `fields` and `matches` belong together",
  })
  .transform((one, context): SignalRule => {
    const given = testKeys.filter((key) => one[key] !== undefined);
    const test = toTest(one);
    if (given.length === 1 && test !== null) return { id: one.id, tools: one.tools, test };
    const found = given.length === 0 ? "there is none" : `there are ${given.join(", ")}`;
    context.addIssue({ code: "custom", message: `a signal has exactly one test; ${found}` });
    return z.NEVER;
  });
const signalsSchema = z.strictObject({ signals: z.array(signalShape) });

interface Written {
  readonly field?: string | undefined;
  readonly fields?: readonly string[] | undefined;
  readonly matches?: RE2JS | undefined;
  readonly field_present?: readonly string[] | undefined;
  readonly any_text_matches?: RE2JS | undefined;
  readonly url_host_matches?: RE2JS | undefined;
  readonly url_scheme_other_than?: readonly string[] | undefined;
  readonly path_matches?:
    | {
        readonly read?: RE2JS | undefined;
        readonly write?: RE2JS | undefined;
        readonly any?: RE2JS | undefined;
      }
    | undefined;
  readonly outside_workspace?: "read" | "write" | "any" | undefined;
  readonly command?: { readonly any: readonly string[]; readonly option?: RE2JS | undefined } | undefined;
}

function toTest(one: Written): SignalTest | null {
  const fields = one.field === undefined ? one.fields : [one.field];
  if (fields !== undefined) {
    return one.matches === undefined ? null : { kind: "field", fields, pattern: one.matches };
  }
  if (one.field_present !== undefined) return { kind: "field_present", fields: one.field_present };
  if (one.any_text_matches !== undefined) return { kind: "any_text", pattern: one.any_text_matches };
  if (one.url_host_matches !== undefined) return { kind: "url_host", pattern: one.url_host_matches };
  if (one.url_scheme_other_than !== undefined) {
    return { kind: "url_scheme_other_than", schemes: one.url_scheme_other_than };
  }
  if (one.path_matches !== undefined) {
    const { read, write, any } = one.path_matches;
    if (read !== undefined) return { kind: "path", mode: "read", pattern: read };
    if (write !== undefined) return { kind: "path", mode: "write", pattern: write };
    return any === undefined ? null : { kind: "path", mode: "any", pattern: any };
  }
  if (one.outside_workspace !== undefined) return { kind: "outside_workspace", mode: one.outside_workspace };
  if (one.command === undefined) return null;
  return {
    kind: "command",
    any: one.command.any.map((words) => words.split(" ")),
    option: one.command.option ?? null,
  };
}

/** The signals of a bundle. */
export interface ParsedSignals {
  readonly signals: readonly SignalRule[];
  /** Names of all, of those that are wrong too. */
  readonly names: readonly string[];
}

/** `signals.yaml`; null when nothing of it can be read. */
export function parseSignals(
  file: string,
  text: string,
  context: { readonly tools: ToolCatalogue | null; readonly ids: RuleIds },
  problems: PolicyProblem[],
): ParsedSignals | null {
  const parsed = parseYamlFile(file, text, signalsSchema, problems);
  if (parsed === null) return null;
  const declared = parsed.declared("signals", "id");
  for (const { name, line } of declared) context.ids.claim(name, file, line, problems);
  parsed.value.signals.forEach(({ id, tools, test }, index) => {
    const line = parsed.lineOf(["signals", index, "id"]);
    if (context.tools === null) return;
    const { entries, hasTool } = context.tools;
    tools.forEach((name, place) => {
      if (hasTool(name)) return;
      problems.push({
        file,
        line: parsed.lineOf(["signals", index, "tools", place]),
        text: `${id}: no tool is named \`${name}\``,
      });
    });
    const judged = entries.filter(({ tool }) => tools.some((name) => patternsMeet(name, tool)));
    const uncovered = test.kind === "field" ? whatIsUncovered(test.fields, judged) : null;
    if (uncovered !== null) problems.push({ file, line, text: `${id}: ${uncovered}` });
  });
  return { signals: parsed.value.signals, names: declared.map(({ name }) => name) };
}

/** A test that reads one of the fields that name a resource, and not the others, can be walked around. */
function whatIsUncovered(fields: readonly string[], judged: readonly ToolEntry[]): string | null {
  for (const { tool, resource } of judged) {
    const left = resource.fields.filter((field) => !fields.includes(field));
    if (left.length > 0 && left.length < resource.fields.length) {
      return `\`${tool}\` can name its resource by ${left.map((field) => `\`${field}\``).join(", ")} too; list each under \`fields\``;
    }
  }
  return null;
}
