import type { Place } from "./place.ts";

const MAX_NAMES = 64;
/** Commands that set a variable by a name that the text may not show; `find .` is none. */
const SETS =
  /(?:^|[^\w.-])(?:read|mapfile|readarray|getopts|unset|let|eval|source|declare|typeset|local|readonly|coproc|trap|printf\s+-v|wait\s+-p)(?:[^\w.-]|$)|(?:^|[;&|({\n]|\b(?:do|then|else|elif|if|while|until)\b)\s*\.\s/;
const LOOP =
  /^while\s+(?:IFS=(?:''|"")?\s+)?read(?:\s+(?:-r|-d\s*(?:''|"")|-rd\s*(?:''|"")))*\s+([A-Za-z_]\w*)\s*(?:;|\n)\s*do\b/;

/**
 * What the variable of a `while read` loop can be, where the text bounds the lines that it reads: the names that come by
 * the pipe, the lines of a here-document, or nothing at all at the top of a command that nobody gives an input.
 */
export function toReadNames(
  text: string,
  { script, stdin, within, wrappers, codeDepth }: Place,
): { readonly name: string; readonly values: readonly string[] } | undefined {
  const head = LOOP.exec(text);
  const name = head?.[1];
  if (head === null || name === undefined) return undefined;
  // Nothing else in the script may set it.
  const rest = script.source.replace(head[0], " ");
  if (SETS.test(rest) || new RegExp(`(?:^|[^\\w$])${name}\\+?=|\\b(?:for|select)\\s+${name}\\b`).test(rest))
    return undefined;
  // Without `-r` a backslash of the input goes away, and may join lines: what is read is not what the text shows.
  const isRaw = /\s-(?:r|rd)\b/.test(head[0]);
  const isKept = (value: string): boolean => isRaw || !value.includes("\\");
  if (stdin.names !== undefined) {
    const values = stdin.names.map((word) =>
      word.kind === "literal" ? word.text : word.reason === "glob" ? (word.glob ?? word.source) : undefined,
    );
    const known = values.filter((value) => value !== undefined);
    return known.length === values.length && known.length <= MAX_NAMES && known.every(isKept)
      ? { name, values: known }
      : undefined;
  }
  if (stdin.text?.kind === "literal") {
    if (!isKept(stdin.text.text)) return undefined;
    const values = stdin.text.text.split("\n").map((line) => line.trim());
    return values.length <= MAX_NAMES ? { name, values: values.filter((line) => line !== "") } : undefined;
  }
  const isAlone = stdin.kind === "inherited" && codeDepth === 1 && wrappers.length === 0;
  return isAlone && !within.includes("function") && !/\b(?:exec|coproc)\b|\(\s*\)/.test(script.source)
    ? { name, values: [] }
    : undefined;
}
