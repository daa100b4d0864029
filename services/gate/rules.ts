import type { RE2JS } from "re2js";
import type { Constraints } from "../../schemas/gate.ts";
import type { DataClass, EffectClass } from "../../schemas/generated/types.ts";
import { toShellRuleText } from "./rule-text.ts";

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
  /** Any of the fields; they are all fields that name the resource, and perhaps others. */
  | {
      readonly kind: "field";
      readonly fields: readonly string[];
      readonly pattern: RE2JS;
      /** Whether the texts are shell commands, and are matched in the form that `toShellRuleText` gives them. */
      readonly isShell: boolean;
    }
  /** One of these fields is there and not empty, whatever it says. */
  | { readonly kind: "field_present"; readonly fields: readonly string[] }
  /** The host of an address as WHATWG URL writes it: lower case, each IPv4 address in four decimal parts. */
  | { readonly kind: "url_host"; readonly fields: readonly string[]; readonly pattern: RE2JS }
  | {
      readonly kind: "url_scheme";
      readonly fields: readonly string[];
      /** Every other scheme matches. */
      readonly otherThan: readonly string[];
    }
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
      return condition.fields.some((field) => {
        const text = one.fieldTexts.get(field) ?? "";
        return textMatches(condition.pattern, condition.isShell ? shellTextOf(text) : text);
      });
    case "field_present":
      return condition.fields.some((field) => (one.fieldTexts.get(field) ?? "") !== "");
    case "url_host":
      return urlsOf(condition.fields, one).some(({ hostname }) => textMatches(condition.pattern, hostname));
    case "url_scheme":
      return urlsOf(condition.fields, one).some(
        ({ protocol }) => !condition.otherThan.includes(protocol.slice(0, -1)),
      );
    case "path":
      return one.paths.some((path) => textMatches(condition.pattern, path));
    case "any_text":
      return one.allTexts().some((text) => textMatches(condition.pattern, text));
    case "outside_workspace":
      return one.paths.some((path) => !isInside(path, one.workingDirectory));
  }
}

let lastShellText = { of: "", is: "" };
/** Each rule asks for the same text. */
function shellTextOf(command: string): string {
  refuseLongText(command);
  if (lastShellText.of !== command) lastShellText = { of: command, is: toShellRuleText(command) };
  return lastShellText.is;
}

/** The addresses in the fields. Throws on a text that is none: who fetches it could read it in another way. */
function urlsOf(fields: readonly string[], one: Matchable): URL[] {
  return fields.flatMap((field) => {
    const text = one.fieldTexts.get(field) ?? "";
    if (text === "") return [];
    refuseLongText(text);
    if (!URL.canParse(text)) throw new RangeError(`the input field \`${field}\` holds no complete address`);
    return [new URL(text)];
  });
}

function refuseLongText(text: string): void {
  if (text.length > matchedTextMaxChars) {
    throw new RangeError(`a text of the input is longer than ${String(matchedTextMaxChars)} characters`);
  }
}

function textMatches(pattern: RE2JS, text: string): boolean {
  refuseLongText(text);
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
