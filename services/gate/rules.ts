import type { RE2JS } from "re2js";
import type { Constraints } from "../../schemas/gate.ts";
import type { DataClass, EffectClass } from "../../schemas/generated/types.ts";

/** How a tool names what it acts on. */
export type ResourceKind = "command" | "path" | "patch" | "url" | "text" | "none";

/** What the catalogue says of one tool. `tool` may end in `*` when all it covers only reads. */
export interface ToolEntry {
  readonly tool: string;
  readonly effect: EffectClass;
  readonly dataClass: DataClass;
  readonly action: string;
  readonly resource: {
    readonly kind: ResourceKind;
    /** Input fields that name it; runtimes differ. Each one that is there counts. */
    readonly fields: readonly string[];
    readonly required: boolean;
  };
  /** Input fields that change nothing in what is done, such as a description: they are no part of the plan. */
  readonly volatile: readonly string[];
  readonly constraints: Constraints;
}

/** When a deny rule matches: exactly one of these. */
export type Condition =
  | { readonly kind: "field"; readonly field: string; readonly pattern: RE2JS }
  | { readonly kind: "path"; readonly pattern: RE2JS }
  | { readonly kind: "any_text"; readonly pattern: RE2JS }
  | { readonly kind: "outside_workspace" };

/** A static deny rule. */
export interface DenyRule {
  readonly id: string;
  readonly tools: readonly string[];
  readonly condition: Condition;
  readonly message: string;
  readonly priority: number;
}

/** A policy bundle: immutable once loaded. */
export interface Bundle {
  /** `policy@<date>.<n>+<first 12 of the digest>`. */
  readonly revision: string;
  /** SHA-256 over all files of the bundle. */
  readonly digest: string;
  readonly tools: readonly ToolEntry[];
  readonly deny: readonly DenyRule[];
}

/** Whether a tool name fits a pattern, which may end in `*`. */
export function toolFits(pattern: string, tool: string): boolean {
  return pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool;
}

/** The entry of a tool: its own, else the longest wildcard that covers it. */
export function findTool(bundle: Bundle, tool: string): ToolEntry | null {
  let best: ToolEntry | null = null;
  for (const entry of bundle.tools) {
    if (!toolFits(entry.tool, tool)) continue;
    if (entry.tool === tool) return entry;
    if (best === null || entry.tool.length > best.tool.length) best = entry;
  }
  return best;
}

/** What a condition may look at. */
export interface Matchable {
  /** Text of each input field that is a text or a list of texts. */
  readonly fieldTexts: ReadonlyMap<string, string>;
  /** Every text of the input, at any depth. */
  readonly allTexts: () => readonly string[];
  /** Files that the input names, resolved. */
  readonly paths: readonly string[];
  readonly workingDirectory: string | null;
}

/** Longer texts are not matched: a rule that cannot look has to say so, and that is a deny. */
export const matchedTextMaxChars = 65_536;

/** Whether a rule's condition holds. Throws when it cannot tell. */
export function conditionHolds(condition: Condition, one: Matchable): boolean {
  switch (condition.kind) {
    case "field":
      return textMatches(condition.pattern, one.fieldTexts.get(condition.field) ?? "");
    case "path":
      return one.paths.some((path) => textMatches(condition.pattern, path));
    case "any_text":
      return one.allTexts().some((text) => textMatches(condition.pattern, text));
    case "outside_workspace":
      return one.paths.some((path) => !isInside(path, one.workingDirectory));
  }
}

function textMatches(pattern: RE2JS, text: string): boolean {
  if (text.length > matchedTextMaxChars) {
    throw new RangeError(`a text of the input is longer than ${String(matchedTextMaxChars)} characters`);
  }
  // Between line feeds, so that patterns need no `^`, `$` or `\b`: those keep the engine from its fast automaton.
  return text !== "" && pattern.test(`\n${text}\n`);
}

/** Whether a resolved path lies in a folder. What cannot be resolved lies outside, and the root is no workspace. */
function isInside(path: string, folder: string | null): boolean {
  if (folder === null) return false;
  const root = folder.replace(/[/\\]+$/, "");
  if (root === "") return false;
  return path === root || path.startsWith(`${root}/`) || path.startsWith(`${root}\\`);
}
