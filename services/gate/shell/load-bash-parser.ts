import { createRequire } from "node:module";
import { Language, Parser } from "web-tree-sitter";
import { processorMs } from "../../platform/processor-time.ts";
import { toSyntaxTree } from "./syntax-tree.ts";
import type { BashParser, SyntaxFault } from "./syntax-tree.ts";

/**
 * Progress reports after which a text is given up: about one comes for every forty nodes, so that what takes more has more
 * nodes than are read. What is read whole costs no more than fifty milliseconds by it.
 */
const MAX_PROGRESS_REPORTS = 1_500;

/** What one parse may cost. `spentMs` is processor time: how busy the machine is does not count. */
export type ParseBudget = { readonly spentMs: () => number; readonly maxParseMs: number };

/** Four times what a text costs that is read whole, and a hundred times what a script costs that a person wrote. */
const parseBudget: ParseBudget = { spentMs: processorMs, maxParseMs: 200 };

/** Read once at the start, so that no call pays for making the grammar's code fast. */
const warmUpText = "env a=b sh -c 'echo \"$x\" | cat' && [[ a == b ]] || { rm -f x; }\n".repeat(200);

/**
 * Loads the grammar from its package once; the parser that it returns is synchronous and frees each tree. The grammar
 * takes seconds to recover from the errors of a few hostile texts, and nobody else is answered meanwhile. Only a text with
 * an error comes past the budget, and it counts as no valid bash whenever it is given up: what it is does not depend on
 * the machine.
 */
export async function loadBashParser(budget: ParseBudget = parseBudget): Promise<BashParser> {
  await Parser.init();
  const wasm = createRequire(import.meta.url).resolve("tree-sitter-bash/tree-sitter-bash.wasm");
  const language = await Language.load(wasm);
  const parser = new Parser();
  parser.setLanguage(language);
  parser.parse(warmUpText)?.delete();
  return {
    parse(text) {
      const startedMs = budget.spentMs();
      let reports = 0;
      let fault: SyntaxFault | undefined;
      const tree = parser.parse(text, null, {
        progressCallback: (state) => {
          reports += 1;
          const isLate = budget.spentMs() - startedMs > budget.maxParseMs;
          // A text with an error is opaque whatever follows, and recovering from it is what takes long.
          if (state.hasError || isLate) fault = "syntax_error";
          else if (reports > MAX_PROGRESS_REPORTS) fault = "too_large";
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
