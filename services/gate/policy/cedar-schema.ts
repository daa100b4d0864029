import * as cedar from "@cedar-policy/cedar-wasm/nodejs";
import { lineAtByte } from "./cedar-text.ts";
import type { PolicyProblem } from "./problem.ts";

const attributes = {
  Agent: { tenant: "String", user: "String", runtime: "String" },
  Tool: { effect: "String", data_class: "String", environment: "String" },
} as const;
const contextShape = {
  signals: "Set<String>",
  labels: "Set<String>",
  tool: "String",
  effect: "String",
  runtime: "String",
  environment: "String",
  tenant: "String",
  user: "String",
} as const;

/** The actions of a schema that has exactly the shape of the questions that are asked; null when it has not. */
export function parseCedarSchema(
  file: string,
  text: string,
  problems: PolicyProblem[],
): readonly string[] | null {
  const before = problems.length;
  const outcome = cedar.schemaToJsonWithResolvedTypes(text);
  if (outcome.type === "failure") {
    // The error of unknown types counts from the type's own name; the error of a check of the whole does not.
    const checked = cedar.validate({ schema: text, policies: { staticPolicies: "" } });
    const errors = checked.type === "failure" ? checked.errors : outcome.errors;
    problems.push(...errors.flatMap((error) => toCedarProblems(file, text, error)));
    return null;
  }
  const report = (word: string, problem: string): void => {
    problems.push({ file, line: lineOfWord(text, word), text: problem });
  };
  for (const warning of outcome.warnings) problems.push(...toCedarProblems(file, text, warning));
  for (const name of Object.keys(outcome.json)) {
    if (name !== "") report(name, `\`${name}\`: put everything outside of namespaces`);
  }
  const root = outcome.json[""];
  if (root === undefined) {
    report("", "the schema declares nothing; declare Agent, Tool and the actions");
    return null;
  }
  const { commonTypes = {}, entityTypes, actions } = root;
  const resolve = (type: unknown): unknown => {
    const name = (type as { readonly type?: string } | undefined)?.type ?? "";
    return Object.hasOwn(commonTypes, name) ? resolve(commonTypes[name]) : type;
  };
  for (const [name, wanted] of Object.entries(attributes)) {
    const entity = entityTypes[name];
    if (entity === undefined) report("", `the entity \`${name}\` is missing`);
    else if ("enum" in entity || entity.tags !== undefined || (entity.memberOfTypes ?? []).length > 0) {
      report(name, `\`${name}\` is a plain entity with attributes, without tags or parents`);
    } else compareShape(name, resolve(entity.shape), wanted, resolve, report);
  }
  for (const name of Object.keys(entityTypes)) {
    if (!Object.hasOwn(attributes, name))
      report(name, `the entity \`${name}\` is never asked about; take it out`);
  }
  for (const [name, { appliesTo, memberOf, attributes: own }] of Object.entries(actions)) {
    if ((memberOf ?? []).length > 0 || own !== undefined) {
      report(name, `the action \`${name}\` stands alone, without groups or attributes`);
    }
    if (appliesTo?.principalTypes.join() !== "Agent" || appliesTo.resourceTypes.join() !== "Tool") {
      report(name, `the action \`${name}\` has to apply to principal [Agent] and resource [Tool]`);
      continue;
    }
    compareShape(`context of ${name}`, resolve(appliesTo.context), contextShape, resolve, report, name);
  }
  return problems.length === before ? Object.keys(actions) : null;
}

function compareShape(
  what: string,
  shape: unknown,
  wanted: Readonly<Record<string, string>>,
  resolve: (type: unknown) => unknown,
  report: (word: string, problem: string) => void,
  word = what,
): void {
  const found = (shape as { readonly attributes?: Record<string, unknown> } | undefined)?.attributes ?? {};
  for (const [name, type] of Object.entries(wanted)) {
    const attribute = found[name];
    if (attribute === undefined) report(word, `${what}: the attribute \`${name}: ${type}\` is missing`);
    else if (typeText(resolve(attribute), resolve) !== type || isOptional(attribute)) {
      report(word, `${what}: the attribute \`${name}\` has to be \`${name}: ${type}\``);
    }
  }
  for (const name of Object.keys(found)) {
    if (!Object.hasOwn(wanted, name)) report(word, `${what}: the attribute \`${name}\` is never given`);
  }
}

function isOptional(attribute: unknown): boolean {
  return (attribute as { readonly required?: boolean }).required === false;
}

function typeText(type: unknown, resolve: (type: unknown) => unknown): string {
  const { type: name, element } = type as { readonly type: string; readonly element?: unknown };
  return name === "Set" ? `Set<${typeText(resolve(element), resolve)}>` : name;
}

/** An error of Cedar with what it relates to, each with its own place. */
export function toCedarProblems(file: string, text: string, error: cedar.DetailedError): PolicyProblem[] {
  const [location] = error.sourceLocations ?? [];
  const message = error.message.replace(/^failed to parse (?:policies|schema) from string: /, "");
  const hints = [location?.label ?? null, error.help].filter((hint) => hint !== null && hint !== "");
  return [
    {
      file,
      line: location === undefined ? 0 : lineAtByte(text, location.start),
      text: [message, ...hints].join("; "),
    },
    ...(error.related ?? []).flatMap((one) => toCedarProblems(file, text, one)),
  ];
}

/** The first line with the word; 0: nowhere. */
function lineOfWord(text: string, word: string): number {
  if (word === "") return 0;
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const lines = text.split("\n");
  const code = lines.map((line) => line.replace(/\/\/.*$/, ""));
  return code.findIndex((line) => new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`).test(line)) + 1;
}
