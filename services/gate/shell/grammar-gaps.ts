import type { SyntaxNode } from "./syntax-tree.ts";

/** Nodes whose text is not all in their children: quoted text, and what is read by hand. */
const LOOSE = /^(string|translated_string|heredoc_body|heredoc_redirect|heredoc_content)$/;

/**
 * Text that the grammar has dropped in silence, as it drops the dash of `cat - <<E`. Between two children there may be
 * blanks and joined lines only; anything else is a part of the command that the tree does not show.
 */
export function findDroppedText(
  root: SyntaxNode,
  source: string,
): { readonly text: string; readonly at: number } | undefined {
  const isBlank = (from: number, to: number): boolean => /^(?:\s|\\\n)*$/.test(source.slice(from, to));
  if (!isBlank(0, root.start) || !isBlank(root.end, source.length))
    return { text: source.slice(0, 40), at: 0 };
  const stack: SyntaxNode[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const children = node.children;
    if (children.length === 0) continue;
    stack.push(...children);
    if (LOOSE.test(node.type)) continue;
    let end = node.start;
    for (const child of children) {
      const isLoneDash =
        node.type === "redirected_statement" && source.slice(end, child.start).trim() === "-";
      if (child.start > end && !isLoneDash && !isBlank(end, child.start))
        return { text: source.slice(end, child.start), at: end };
      end = Math.max(end, child.end);
    }
    if (node.end > end && !isBlank(end, node.end)) return { text: source.slice(end, node.end), at: end };
  }
  return undefined;
}
