import { SETTERS } from "./constants.ts";
import type { Word } from "./parsed-command.ts";
import type { SyntaxNode } from "./syntax-tree.ts";
import { toSingleWord, toWords } from "./words.ts";
import type { WordScope } from "./words.ts";

const MAX_VALUES = 32;

/**
 * The values that each variable of a script can get in it, loops included; null for one that gets a value that the
 * text does not fix. Undefined: something in the script may set any variable.
 */
export function toBoundedVariables(
  root: SyntaxNode,
  given: WordScope,
): ReadonlyMap<string, readonly string[] | null> | undefined {
  const { source } = given;
  if (SETTERS.test(source)) return undefined;
  const scope: WordScope = { ...given, onMismatch: () => undefined };
  const values = new Map<string, string[] | null>();
  const add = (name: string, word: Word | undefined): void => {
    const text = word === undefined ? undefined : toValue(word);
    const before = values.get(name);
    if (text === undefined || before === null || (before?.length ?? 0) >= MAX_VALUES) values.set(name, null);
    else values.set(name, [...(before ?? []), text]);
  };
  const spoil = (text: string): void => {
    for (const name of text.match(/[A-Za-z_]\w*/g) ?? []) values.set(name, null);
  };
  const stack: SyntaxNode[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const text = source.slice(node.start, node.end);
    if (node.type === "variable_assignment") {
      const [target, equals, value] = node.children;
      const name = target === undefined ? "" : source.slice(target.start, target.end);
      const isPlain = equals !== undefined && source.slice(equals.start, equals.end) === "=";
      if (!/^\w+$/.test(name) || !isPlain) spoil(name);
      else add(name, value === undefined ? { kind: "literal", text: "" } : toSingleWord(value, scope));
    }
    if (node.type === "for_statement" || node.type === "select_statement") {
      const target = node.children.find(({ field }) => field === "variable");
      const name = target === undefined ? "" : source.slice(target.start, target.end);
      const words = node.children
        .filter(({ field }) => field === "value")
        .flatMap((child) => toWords([child], scope));
      if (words.length === 0) add(name, undefined);
      for (const word of words)
        for (const one of (word.kind === "unresolved" ? word.choices : undefined) ?? [word]) add(name, one);
    }
    if (
      /^(arithmetic_expansion|c_style_for_statement|subscript)$/.test(node.type) ||
      text.startsWith("((") ||
      (node.type === "test_command" && /-v\s|\[\[.*-(?:eq|ne|lt|le|gt|ge)\s/s.test(text)) ||
      (node.type === "expansion" && /^\$\{[A-Za-z_]\w*:?=|[[]|:[^-+?=]/.test(text))
    )
      spoil(text);
    stack.push(...node.children);
  }
  return values;
}

/** A text, or a glob as it stands: it is one that is found by it. */
function toValue(word: Word): string | undefined {
  if (word.kind === "literal") return word.text;
  const text = word.glob ?? word.source;
  if (word.reason === "home" && /^~(\/|$)/.test(text)) return text;
  return word.reason === "glob" && !/[$`'"\\(){}]/.test(text) ? text : undefined;
}
