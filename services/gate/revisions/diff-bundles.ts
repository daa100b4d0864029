import { parse as parseYaml } from "yaml";
import type { Json } from "../../../schemas/gate.ts";
import { canonicalDigest } from "../../platform/canonical-json.ts";
import { parseCedarFile } from "../policy/parse-cedar.ts";
import { compareTexts } from "../policy/problem.ts";
import { createRuleIds } from "../policy/rule-ids.ts";

/** One difference of two bundles. */
export interface BundleDifference {
  /** `rules of risk.yaml`, `tools of tools.yaml`, or a file by itself. */
  readonly where: string;
  /** Rule id, tool name, or the name of a setting. */
  readonly what: string;
  readonly change: "added" | "removed" | "changed";
  /** Parts that changed, each with its old and new value as JSON; of a whole that came or went, none. */
  readonly parts: readonly {
    readonly part: string;
    readonly before: string | null;
    readonly after: string | null;
  }[];
}

type Named = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

/** What is different, by the ids of rules and the names of tools and not by lines. */
export function diffBundles(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly BundleDifference[] {
  const left = toThings(before);
  const right = toThings(after);
  const found: BundleDifference[] = [];
  for (const where of [...new Set([...left.keys(), ...right.keys()])].sort(compareTexts)) {
    const old = left.get(where) ?? new Map<string, Record<string, unknown>>();
    const now = right.get(where) ?? new Map<string, Record<string, unknown>>();
    for (const what of [...new Set([...old.keys(), ...now.keys()])].sort(compareTexts)) {
      const one = toDifference(where, what, old.get(what), now.get(what));
      if (one !== null) found.push(one);
    }
  }
  return found;
}

function toDifference(
  where: string,
  what: string,
  old: Readonly<Record<string, unknown>> | undefined,
  now: Readonly<Record<string, unknown>> | undefined,
): BundleDifference | null {
  if (old === undefined) return { where, what, change: "added", parts: [] };
  if (now === undefined) return { where, what, change: "removed", parts: [] };
  const parts = [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((part) => !isSame(old[part], now[part]))
    .map((part) => ({ part, before: toText(old[part]), after: toText(now[part]) }));
  return parts.length === 0 ? null : { where, what, change: "changed", parts };
}

function isSame(left: unknown, right: unknown): boolean {
  if (left === undefined || right === undefined) return left === right;
  return canonicalDigest(left as Json) === canonicalDigest(right as Json);
}

function toText(value: unknown): string | null {
  return value === undefined ? null : typeof value === "string" ? value : JSON.stringify(value);
}

/** Everything of a bundle that has a name, by where it stands. */
function toThings(files: ReadonlyMap<string, string>): ReadonlyMap<string, Named> {
  const things = new Map<string, Map<string, Record<string, unknown>>>();
  function add(where: string, what: string, thing: Record<string, unknown>): void {
    const known = things.get(where) ?? new Map<string, Record<string, unknown>>();
    things.set(where, known.set(what, thing));
  }
  for (const [file, text] of files) {
    if (file.startsWith("cases/")) add("cases", file, { text });
    else if (file.endsWith(".cedar")) addCedar(file, text, add);
    else if (file.endsWith(".yaml")) addYaml(file, text, add);
    else add("files", file, { text });
  }
  return things;
}

type Add = (where: string, what: string, thing: Record<string, unknown>) => void;

function addCedar(file: string, text: string, add: Add): void {
  const options = {
    isStatic: file === "static-deny.cedar",
    schema: null,
    ids: createRuleIds([]),
    // Both bundles were validated before: here only their texts are told apart.
    names: { hasSignal: () => true, hasLabel: () => true, hasTool: () => true },
  };
  for (const rule of parseCedarFile(file, text, options, [])) {
    const { effect, message, reason, priority, permitText } = rule;
    const body = permitText
      .replace(/@[a-z]+\("(?:[^"\\]|\\.)*"\)/g, "")
      .replace(/\s+/g, " ")
      .trim();
    add(`policies of ${file}`, rule.id, { effect, message, reason, priority, policy: body });
  }
}

function addYaml(file: string, text: string, add: Add): void {
  const content: unknown = parseYaml(text);
  if (typeof content !== "object" || content === null) return;
  for (const [key, value] of Object.entries(content as Record<string, unknown>)) {
    const items: readonly unknown[] = Array.isArray(value) ? value : [];
    const named = items.map(nameOf);
    if (items.length > 0 && named.every((name) => name !== null)) {
      items.forEach((item, index) =>
        add(`${key} of ${file}`, named[index] ?? "", item as Record<string, unknown>),
      );
    } else add(file, key, { value });
  }
}

function nameOf(item: unknown): string | null {
  if (typeof item !== "object" || item === null) return null;
  const { id, tool, program } = item as Readonly<Record<"id" | "tool" | "program", unknown>>;
  return [id, tool, program].find((name) => typeof name === "string") ?? null;
}
