import type { SyntaxNode } from "./syntax-tree.ts";
import { toSingleWord } from "./words.ts";
import type { WordScope } from "./words.ts";

/** Commands that can set a variable by a name the text does not show, or whose code shares the variables. */
export const SETTERS =
  /(^|[^\w.-])(read|mapfile|readarray|getopts|unset|let|eval|source|declare|typeset|local|readonly|coproc|trap|printf\s+-v|wait\s+-p)([^\w.-]|$)|(^|[;&|({\s])\.\s/;
const UNSTABLE =
  /^(_|IFS|PATH|HOME|PWD|OLDPWD|RANDOM|SRANDOM|SECONDS|LINENO|EPOCH\w*|BASH\w*|REPLY|OPT\w+|UID|EUID|PPID|DIRSTACK|FUNCNAME|GROUPS|HISTCMD|PIPESTATUS|SHELLOPTS|COLUMNS|LINES)$/;

/**
 * Variables whose value at every later use is certain: assigned exactly once in the whole script, by a statement of its
 * own that always runs in this shell, with a literal value, while nothing in the script could set it in another way.
 */
export function toConstants(
  root: SyntaxNode,
  scope: WordScope,
): { name: string; value: string; from: number }[] {
  if (SETTERS.test(scope.source)) return [];
  const assigned = new Map<string, number>();
  const count = (name: string): void => {
    assigned.set(name, (assigned.get(name) ?? 0) + 1);
  };
  const stack: SyntaxNode[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const text = scope.source.slice(node.start, node.end);
    const target = node.children[0];
    if (node.type === "variable_assignment" && target !== undefined)
      count(scope.source.slice(target.start, target.end).replace(/\[.*/s, ""));
    if (node.type === "for_statement" || node.type === "select_statement")
      for (const child of node.children)
        if (child.type === "variable_name") count(scope.source.slice(child.start, child.end));
    // Anything named where arithmetic may assign, or in `${X:=…}`, is no constant.
    if (
      /^(arithmetic_expansion|c_style_for_statement|test_command|subscript)$/.test(node.type) ||
      text.startsWith("((")
    )
      for (const name of text.match(/[A-Za-z_]\w*/g) ?? []) assigned.set(name, 2);
    if (node.type === "expansion") {
      const name = /^\$\{([A-Za-z_]\w*):?=/.exec(text)?.[1];
      if (name !== undefined) assigned.set(name, 2);
      if (/[[]|:[^-+?=]/.test(text))
        for (const found of text.match(/[A-Za-z_]\w*/g) ?? []) assigned.set(found, 2);
    }
    stack.push(...node.children);
  }
  const constants = new Map<string, string>();
  const found: { name: string; value: string; from: number }[] = [];
  for (const node of toCertainAssignments(root, scope.source)) {
    const [target, equals, value] = node.children;
    if (target?.type !== "variable_name" || equals === undefined) continue;
    const name = scope.source.slice(target.start, target.end);
    if (scope.source.slice(equals.start, equals.end) !== "=") continue;
    if (assigned.get(name) !== 1 || UNSTABLE.test(name)) continue;
    const word =
      value === undefined
        ? ({ kind: "literal", text: "" } as const)
        : toSingleWord(value, { ...scope, constants, onMismatch: () => undefined });
    if (word.kind !== "literal") continue;
    constants.set(name, word.text);
    found.push({ name, value: word.text, from: node.end });
  }
  return found;
}

/** Assignments that are statements of their own at the top, or the first of a chain of `&&` there. */
function toCertainAssignments(root: SyntaxNode, source: string): SyntaxNode[] {
  const certain: SyntaxNode[] = [];
  root.children.forEach((child, index) => {
    const after = root.children[index + 1];
    if (after !== undefined && source.slice(after.start, after.end) === "&") return;
    let node: SyntaxNode | undefined = child;
    while (node?.type === "list" && node.children[1]?.type === "&&") node = node.children[0];
    if (node?.type === "variable_assignment") certain.push(node);
    if (node?.type === "variable_assignments") certain.push(...node.children);
  });
  return certain;
}
