import type { RE2JS } from "re2js";
import type { Json, JsonObject } from "../../schemas/gate.ts";
import { isInside } from "./classify-paths.ts";
import type { Finding, TouchedPath } from "./classified.ts";
import type { SignalRule, SignalTest } from "./policy/policy.ts";
import { toolFits } from "./policy/tool-pattern.ts";
import { toKnownName } from "./shell/full-words.ts";
import { mayMatch } from "./shell/normal-form.ts";
import type { CommandPattern } from "./shell/normal-form.ts";
import { isBranchName } from "./shell/options.ts";
import type { ParsedCommand, SimpleCommand } from "./shell/parsed-command.ts";

/** Longer texts are not matched: a rule that cannot look has to say so, and that is a deny. */
export const matchedTextMaxChars = 65_536;

/** What the tests of signals may look at. */
export interface Matchable {
  readonly tool: string;
  readonly input: JsonObject;
  /** Every text of the input, at any depth. */
  readonly texts: readonly string[];
  readonly touched: readonly TouchedPath[];
  readonly workingDirectory: string | undefined;
  /** Addresses that the call asks for. Throws on one that cannot be read: who fetches it could read it in another way. */
  readonly urls: () => readonly URL[];
  readonly command: ParsedCommand | null;
}

/** Ids of the signals that hold, and a finding for each one that could not be tested. Never throws. */
export function testSignals(
  rules: readonly SignalRule[],
  one: Matchable,
): { readonly held: readonly string[]; readonly findings: readonly Finding[] } {
  const held: string[] = [];
  const findings: Finding[] = [];
  const ran = new Set(one.command?.commands.map(({ program }) => toKnownName(program)));
  for (const { id, test, programs } of rulesOfTool(rules, one.tool)) {
    if (programs !== null && !programs.some((program) => ran.has(program))) continue;
    try {
      if (testHolds(test, one)) held.push(id);
    } catch (error) {
      findings.push({
        rule: id,
        reason: "RULE_FAILED",
        message: `the signal \`${id}\` could not be tested: ${error instanceof Error ? error.message : "fault"}`,
      });
    }
  }
  return { held, findings };
}

/** A rule that can hold for a tool. */
interface ToolRule {
  readonly id: string;
  readonly test: SignalTest;
  /** Programs without which it cannot hold; null: it looks at something else than commands. */
  readonly programs: readonly string[] | null;
}

/** Most tools whose rules are kept for a policy; names come with requests. */
const keptToolsMax = 256;
const keptRules = new WeakMap<readonly SignalRule[], Map<string, readonly ToolRule[]>>();

function rulesOfTool(rules: readonly SignalRule[], tool: string): readonly ToolRule[] {
  let byTool = keptRules.get(rules);
  if (byTool === undefined) {
    byTool = new Map();
    keptRules.set(rules, byTool);
  }
  let found = byTool.get(tool);
  if (found === undefined) {
    found = rules
      .filter(({ tools }) => tools.length === 0 || tools.some((pattern) => toolFits(pattern, tool)))
      .map(({ id, test }) => ({
        id,
        test,
        programs: test.kind === "command" ? test.any.flatMap(([program]) => program ?? []) : null,
      }));
    if (byTool.size >= keptToolsMax) byTool.clear();
    byTool.set(tool, found);
  }
  return found;
}

function testHolds(test: SignalTest, one: Matchable): boolean {
  switch (test.kind) {
    case "field":
      return test.fields.some((field) => textMatches(test.pattern, toFieldText(one.input, field)));
    case "field_present":
      return test.fields.some((field) => isPresent(one.input, field));
    case "any_text":
      return one.texts.some((text) => textMatches(test.pattern, text));
    case "url_host":
      return one.urls().some(({ hostname }) => textMatches(test.pattern, hostname.replace(/\.$/, "")));
    case "url_scheme_other_than":
      return one.urls().some(({ protocol }) => !test.schemes.includes(protocol.slice(0, -1)));
    case "path":
      return ofMode(one.touched, test.mode).some(({ path }) => textMatches(test.pattern, path));
    case "outside_workspace":
      return ofMode(one.touched, test.mode).some(({ path }) => !isInside(path, one.workingDirectory));
    case "command":
      return (one.command?.commands ?? []).some((command) => commandFits(command, test));
  }
}

const ofMode = (touched: readonly TouchedPath[], mode: "read" | "write" | "any"): readonly TouchedPath[] =>
  mode === "any" ? touched : touched.filter((path) => path.mode === mode);

/** A word that is not fixed may be anything, so it fits. */
function commandFits(command: SimpleCommand, test: SignalTest & { readonly kind: "command" }): boolean {
  const { any, option } = test;
  if (!any.some((words) => isPattern(words) && mayMatch(command, words))) return false;
  return (
    option === null ||
    command.argv.some((word) =>
      word.kind === "unresolved" ? !isBranchName(word) : textMatches(option, word.text),
    )
  );
}

const isPattern = (words: readonly string[]): words is CommandPattern => words.length > 0;

/** Whether a pattern is found in a text; throws when the text is too long to look at. */
export function textMatches(pattern: RE2JS, text: string): boolean {
  refuseLongText(text);
  // Between line feeds, so that patterns need no `^`, `$` or `\b`: those keep the engine from its fast automaton.
  return text !== "" && pattern.test(`\n${text}\n`);
}

/** Throws when a text is too long to be looked at. */
export function refuseLongText(text: string): void {
  if (text.length > matchedTextMaxChars) {
    throw new RangeError(`a text of the input is longer than ${String(matchedTextMaxChars)} characters`);
  }
}

/** A field's text: a list of texts is one text with blanks, a number or a truth value is its name. */
function toFieldText(input: JsonObject, field: string): string {
  const value = toField(input, field);
  if (Array.isArray(value)) return value.every((one) => typeof one === "string") ? value.join(" ") : "";
  return typeof value === "object" || value === undefined ? "" : String(value);
}

function isPresent(input: JsonObject, field: string): boolean {
  const value = toField(input, field);
  if (value === undefined || value === null || value === "" || value === false) return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}

const toField = (input: JsonObject, field: string): Json | undefined =>
  Object.hasOwn(input, field) ? input[field] : undefined;
