import type { Tree } from "web-tree-sitter";

/** A node of the grammar's tree as plain data, so that the WASM tree can be freed before anybody judges it. */
export type SyntaxNode = {
  readonly type: string;
  readonly field: string | undefined;
  readonly start: number;
  readonly end: number;
  readonly children: readonly SyntaxNode[];
};

export type SyntaxFault = "syntax_error" | "too_deep" | "too_large";
export type SyntaxResult =
  { readonly ok: true; readonly root: SyntaxNode } | { readonly ok: false; readonly fault: SyntaxFault };

/** Reads one script into a tree, or says why it cannot be read. */
export type BashParser = { readonly parse: (text: string) => SyntaxResult };

const MAX_DEPTH = 600;
const MAX_NODES = 30_000;

type OpenNode = {
  type: string;
  field: string | undefined;
  start: number;
  end: number;
  children: SyntaxNode[];
};

/** Copies the tree iteratively; a tree with ERROR or MISSING, or beyond the limits, is refused whole. */
export function toSyntaxTree(tree: Tree): SyntaxResult {
  if (tree.rootNode.hasError) return { ok: false, fault: "syntax_error" };
  const cursor = tree.walk();
  try {
    const open = (): OpenNode => ({
      type: cursor.nodeType,
      field: cursor.currentFieldName ?? undefined,
      start: cursor.startIndex,
      end: cursor.endIndex,
      children: [],
    });
    const root = open();
    const path: OpenNode[] = [root];
    let nodes = 1;
    let isDown = true;
    for (;;) {
      if (isDown && cursor.gotoFirstChild()) {
        if (path.length >= MAX_DEPTH) return { ok: false, fault: "too_deep" };
        const node = open();
        path.at(-1)?.children.push(node);
        path.push(node);
      } else if (cursor.gotoNextSibling()) {
        path.pop();
        const node = open();
        path.at(-1)?.children.push(node);
        path.push(node);
        isDown = true;
      } else if (cursor.gotoParent()) {
        path.pop();
        isDown = false;
        continue;
      } else {
        return { ok: true, root };
      }
      nodes += 1;
      if (nodes > MAX_NODES) return { ok: false, fault: "too_large" };
      if (cursor.nodeIsMissing) return { ok: false, fault: "syntax_error" };
    }
  } finally {
    cursor.delete();
  }
}
