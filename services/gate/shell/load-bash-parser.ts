import { createRequire } from "node:module";
import { Language, Parser } from "web-tree-sitter";
import { toSyntaxTree } from "./syntax-tree.ts";
import type { BashParser } from "./syntax-tree.ts";

/** Progress reports after which a hostile text is given up; an ordinary command ends before the first. */
const MAX_PROGRESS_REPORTS = 20_000;

/** Loads the grammar from its package once; the parser that it returns is synchronous and frees each tree. */
export async function loadBashParser(): Promise<BashParser> {
  await Parser.init();
  const wasm = createRequire(import.meta.url).resolve("tree-sitter-bash/tree-sitter-bash.wasm");
  const language = await Language.load(wasm);
  const parser = new Parser();
  parser.setLanguage(language);
  return {
    parse(text) {
      let reports = 0;
      const tree = parser.parse(text, null, {
        progressCallback: () => {
          reports += 1;
          return reports > MAX_PROGRESS_REPORTS;
        },
      });
      if (tree === null) {
        parser.reset();
        return { ok: false, fault: "too_large" };
      }
      try {
        return toSyntaxTree(tree);
      } finally {
        tree.delete();
      }
    },
  };
}
