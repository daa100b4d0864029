import { createHash } from "node:crypto";
import { RE2JS } from "re2js";
import { LineCounter, isMap, isNode, parseDocument } from "yaml";
import type { Document } from "yaml";
import { z } from "zod";
import { constraintsSchema } from "../../schemas/gate.ts";
import type { Bundle, Condition, DenyRule, ToolEntry } from "./rules.ts";
import { toolFits } from "./rules.ts";

/** One thing that is wrong with a bundle. */
export interface BundleProblem {
  readonly file: string;
  /** From 1; 0 when the file as a whole is meant. */
  readonly line: number;
  readonly text: string;
}
export type ParsedBundle =
  | { readonly ok: true; readonly bundle: Bundle }
  | { readonly ok: false; readonly problems: readonly BundleProblem[] };

const effectClasses = ["none", "read", "write", "execute", "network", "spawn"] as const;
const dataClasses = ["public", "internal", "confidential", "secret"] as const;
const resourceKinds = ["command", "path", "patch", "url", "text", "none"] as const;
const ruleId = z.string().regex(/^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$/, "an id has the form `deny.shell.wipe`");
const toolPattern = z
  .string()
  .regex(
    /^[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+)*(\.\*|[A-Za-z0-9_-]\*)?$/,
    "a tool has the form `shell.run` or `file.*`",
  );

const bundleSchema = z.strictObject({
  revision: z
    .string()
    .regex(/^policy@\d{4}-\d{2}-\d{2}\.\d+$/, "a revision has the form `policy@2026-01-31.1`"),
});
const toolsSchema = z.strictObject({
  tools: z
    .array(
      z
        .strictObject({
          tool: toolPattern,
          effect: z.enum(effectClasses),
          data_class: z.enum(dataClasses),
          action: z.string().min(1),
          resource: z
            .strictObject({
              kind: z.enum(resourceKinds),
              fields: z.array(z.string().min(1)).default([]),
              required: z.boolean().default(true),
            })
            .default({ kind: "none", fields: [], required: false }),
          volatile: z.array(z.string().min(1)).default([]),
          constraints: constraintsSchema.default({}),
        })
        .refine((one) => !one.tool.includes("*") || one.effect === "read" || one.effect === "none", {
          message: "a wildcard may cover only tools that read",
          path: ["effect"],
        })
        .refine((one) => one.resource.kind === "none" || one.resource.fields.length > 0, {
          message: "name the input fields of the resource",
          path: ["resource"],
        })
        .refine((one) => !one.volatile.some((field) => one.resource.fields.includes(field)), {
          message: "a field that names the resource is never volatile",
          path: ["volatile"],
        }),
    )
    .min(1),
});
const pattern = z.string().min(1).max(4096);
const fieldList = z.array(z.string().min(1)).min(1);
const denySchema = z.strictObject({
  rules: z
    .array(
      z.strictObject({
        id: ruleId,
        tools: z.array(toolPattern).min(1),
        when: z.union([
          z.strictObject({ field: z.string().min(1), matches: pattern }),
          z.strictObject({ fields: fieldList, matches: pattern }),
          z.strictObject({ field_present: fieldList }),
          z.strictObject({ url_host_matches: pattern }),
          z.strictObject({ url_scheme_other_than: z.array(z.string().regex(/^[a-z][a-z0-9+.-]*$/)).min(1) }),
          z.strictObject({ path_matches: pattern }),
          z.strictObject({ any_text_matches: pattern }),
          z.strictObject({ outside_workspace: z.literal(true) }),
        ]),
        message: z.string().min(1).max(300),
        priority: z.number().int().min(-1000).max(1000).default(0),
      }),
    )
    .min(1),
});

/** Files of a bundle, by name. */
export const bundleFiles = ["bundle.yaml", "tools.yaml", "deny.yaml"] as const;

/** Reads a bundle from the texts of its files. Every problem is reported, with file and line. */
export function parseBundle(texts: ReadonlyMap<string, string>): ParsedBundle {
  const problems: BundleProblem[] = [];
  const head = parseFile("bundle.yaml", bundleSchema, texts, problems);
  const tools = parseFile("tools.yaml", toolsSchema, texts, problems);
  const deny = parseFile("deny.yaml", denySchema, texts, problems);
  const entries = (tools?.value.tools ?? []).map((one): ToolEntry => ({
    tool: one.tool,
    effect: one.effect,
    dataClass: one.data_class,
    action: one.action,
    resource: one.resource,
    volatile: one.volatile,
    constraints: one.constraints,
  }));
  if (tools !== null)
    reportDoubles(
      "tools.yaml",
      "tools",
      entries.map((one) => one.tool),
      tools.lineOf,
      problems,
    );
  const rules: DenyRule[] = [];
  (deny?.value.rules ?? []).forEach((one, index) => {
    const judged = entries.filter(({ tool }) =>
      one.tools.some((name) => toolFits(name, tool) || toolFits(tool, name)),
    );
    const condition = toCondition(one.when, judged);
    if (typeof condition === "string") {
      problems.push({
        file: "deny.yaml",
        line: deny?.lineOf(["rules", index, "when"]) ?? 0,
        text: condition,
      });
    } else {
      rules.push({ id: one.id, tools: one.tools, condition, message: one.message, priority: one.priority });
    }
  });
  if (deny !== null) {
    const ids = deny.value.rules.map((one) => one.id);
    reportDoubles("deny.yaml", "rules", ids, deny.lineOf, problems);
  }
  if (problems.length > 0 || head === null) return { ok: false, problems };
  const digest = digestOf(texts);
  const revision = `${head.value.revision}+${digest.slice(0, 12)}`;
  return { ok: true, bundle: { revision, digest: `sha256:${digest}`, tools: entries, deny: rules } };
}

type DenyWhen = z.output<typeof denySchema>["rules"][number]["when"];

/** The condition, or what is wrong with it. `judged`: the tools of the catalogue that the rule is about. */
function toCondition(when: DenyWhen, judged: readonly ToolEntry[]): Condition | string {
  try {
    if ("outside_workspace" in when) return { kind: "outside_workspace" };
    if ("field_present" in when) return { kind: "field_present", fields: when.field_present };
    if ("matches" in when) {
      const fields = "field" in when ? [when.field] : when.fields;
      const isShell = judged.some(({ resource }) => resource.kind === "command");
      return (
        whatIsUncovered(fields, judged) ?? {
          kind: "field",
          fields,
          pattern: RE2JS.compile(when.matches),
          isShell,
        }
      );
    }
    if ("path_matches" in when) return { kind: "path", pattern: RE2JS.compile(when.path_matches) };
    if ("any_text_matches" in when)
      return { kind: "any_text", pattern: RE2JS.compile(when.any_text_matches) };
    const other = judged.find(({ resource }) => resource.kind !== "url");
    if (other !== undefined)
      return `\`${other.tool}\` names its resource by no address; match its fields instead`;
    const fields = [...new Set(judged.flatMap(({ resource }) => resource.fields))];
    return "url_host_matches" in when
      ? { kind: "url_host", fields, pattern: RE2JS.compile(when.url_host_matches) }
      : { kind: "url_scheme", fields, otherThan: when.url_scheme_other_than };
  } catch (error) {
    return `the pattern is not RE2: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** A rule that reads one of the fields that name a resource, and not the others, can be walked around. */
function whatIsUncovered(fields: readonly string[], judged: readonly ToolEntry[]): string | null {
  for (const { tool, resource } of judged) {
    const left = resource.fields.filter((field) => !fields.includes(field));
    if (left.length > 0) {
      return `\`${tool}\` can name its resource by ${left.map((field) => `\`${field}\``).join(", ")} too; list each under \`fields\``;
    }
  }
  return null;
}

type LineOf = (path: readonly PropertyKey[]) => number;

function parseFile<T>(
  file: string,
  schema: z.ZodType<T>,
  texts: ReadonlyMap<string, string>,
  problems: BundleProblem[],
): { readonly value: T; readonly lineOf: LineOf } | null {
  const text = texts.get(file);
  if (text === undefined) {
    problems.push({ file, line: 0, text: "the file is missing" });
    return null;
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, maxAliasCount: 0 } as object);
  if (document.errors.length > 0) {
    for (const error of document.errors) {
      problems.push({
        file,
        line: lines.linePos(error.pos[0]).line,
        text: error.message.split("\n")[0] ?? "",
      });
    }
    return null;
  }
  const lineOf: LineOf = (path) => lineOfPath(document, lines, path);
  const parsed = schema.safeParse(document.toJS({ maxAliasCount: 0 }));
  if (parsed.success) return { value: parsed.data, lineOf };
  for (const issue of parsed.error.issues) {
    const where = issue.path.map(String).join(".");
    problems.push({
      file,
      line: lineOf(issue.path),
      text: where === "" ? issue.message : `${where}: ${issue.message}`,
    });
  }
  return null;
}

/** The line of the deepest node on the path that exists. */
function lineOfPath(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (!isNode(node) || node.range == null) continue;
    const first = isMap(node) ? node.items[0]?.key : undefined;
    const start = isNode(first) && first.range != null ? first.range[0] : node.range[0];
    return lines.linePos(start).line;
  }
  return 0;
}

function reportDoubles(
  file: string,
  list: string,
  names: readonly string[],
  lineOf: LineOf,
  problems: BundleProblem[],
): void {
  names.forEach((name, index) => {
    if (names.indexOf(name) < index) {
      problems.push({ file, line: lineOf([list, index]), text: `\`${name}\` is there twice` });
    }
  });
}

function digestOf(texts: ReadonlyMap<string, string>): string {
  const hash = createHash("sha256");
  for (const file of bundleFiles) {
    const text = texts.get(file) ?? "";
    hash.update(`${file}\n${String(Buffer.byteLength(text))}\n`).update(text);
  }
  return hash.digest("hex");
}
