import { createRequire } from "node:module";
import { Language, Parser } from "web-tree-sitter";
import { toSyntaxTree } from "./syntax-tree.ts";
import type { BashParser, SyntaxFault } from "./syntax-tree.ts";

/** Progress reports after which a text is given up; one of the longest permitted length needs less than half of them. */
const MAX_PROGRESS_REPORTS = 4_000;

/** Limits the time of one parse. The grammar takes seconds for a few hostile texts, and a text given up is opaque. */
export type ParseBudget = { readonly monotonicMs: () => number; readonly maxParseMs: number };

/**
 * Loads the grammar from its package once; the parser that it returns is synchronous and frees each tree. Whoever
 * answers within a deadline hands in a budget; without one a parse ends by the amount of work alone.
 */
export async function loadBashParser(budget?: ParseBudget): Promise<BashParser> {
  await Parser.init();
  const wasm = createRequire(import.meta.url).resolve("tree-sitter-bash/tree-sitter-bash.wasm");
  const language = await Language.load(wasm);
  const parser = new Parser();
  parser.setLanguage(language);
  return {
    parse(text) {
      const startedMs = budget?.monotonicMs() ?? 0;
      let reports = 0;
      let fault: SyntaxFault | undefined;
      const tree = parser.parse(text, null, {
        progressCallback: (state) => {
          reports += 1;
          const isLate = budget !== undefined && budget.monotonicMs() - startedMs > budget.maxParseMs;
          // A text with an error is opaque whatever follows, and recovering from it is what takes long.
          if (state.hasError) fault = "syntax_error";
          else if (isLate || reports > MAX_PROGRESS_REPORTS) fault = "too_large";
          return fault !== undefined;
        },
      });
      if (tree === null) {
        parser.reset();
        return { ok: false, fault: fault ?? "too_large" };
      }
      try {
        return toSyntaxTree(tree);
      } finally {
        tree.delete();
      }
    },
  };
}
