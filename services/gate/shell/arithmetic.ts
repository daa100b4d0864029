import type { SyntaxNode } from "./syntax-tree.ts";

const NUMBER = /^["']?[-+]?\d+["']?$/;
const NUMERIC_OUTPUT =
  /^"?(\$\((nproc|date \+%[sNjdHMSy]+|seq [\d $a-zA-Z_]+)\)|\$\(\([^`$]*\)\)|\$\{?#[\w@*[\]]+\}?|\$[#?!$])"?$/;

/**
 * Variables of a script that may hold text. bash evaluates the text of a variable that arithmetic names, and a
 * subscript in it runs code: `x='a[$(rm y)]'; echo $((x))` removes y.
 */
export function toTextVariables(root: SyntaxNode, source: string): ReadonlySet<string> {
  const names = new Set<string>();
  const stack: SyntaxNode[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const [target, , value] = node.children;
    if (node.type === "variable_assignment" && target !== undefined) {
      const text = value === undefined ? "0" : source.slice(value.start, value.end);
      if (!NUMBER.test(text) && !NUMERIC_OUTPUT.test(text))
        names.add(source.slice(target.start, target.end).replace(/\[.*/s, ""));
    }
    if (node.type === "for_statement") {
      const variable = node.children.find(({ field }) => field === "variable");
      const values = node.children.filter(({ field }) => field === "value");
      const areNumbers =
        values.length > 0 &&
        values.every((one) => {
          const text = source.slice(one.start, one.end);
          return NUMBER.test(text) || NUMERIC_OUTPUT.test(text) || /^\{\d+\.\.\d+(\.\.\d+)?\}$/.test(text);
        });
      if (variable !== undefined && !areNumbers) names.add(source.slice(variable.start, variable.end));
    }
    stack.push(...node.children);
  }
  for (const match of source.matchAll(
    /(?:^|[^\w-])(?:read|mapfile|readarray|getopts|printf\s+-v)\s([^;&|\n<>]*)/g,
  ))
    for (const name of (match[1] ?? "").match(/[A-Za-z_]\w*/g) ?? []) names.add(name);
  return names;
}

/** Whether evaluating this text may run code that the text does not show. */
export function mayRunText(text: string, textVariables: ReadonlySet<string>): boolean {
  const bare = text
    .replace(/\$\((nproc|date \+%[sNjdHMSy]+)\)/g, "0")
    .replace(/\$\{?#[\w@*[\]]+\}?/g, "0")
    .replace(/\$[#?$!]/g, "0");
  if (/\$[\d@*({]|`|\$\{?!/.test(bare.replace(/\$\{[A-Za-z_]\w*\}/g, " ").replace(/\$\(\(/g, "  "))) {
    if (/\$\{[A-Za-z_]\w*\[(\$?\w+|@|\*)\]\}/.test(bare) === false) return true;
  }
  return (bare.match(/[A-Za-z_]\w*/g) ?? []).some((name) => textVariables.has(name));
}
