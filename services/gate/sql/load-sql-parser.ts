import { hasSqlDetails, loadModule, parseSync } from "libpg-query";

/** A node of the tree as the parser prints it: objects with one capitalised key are nodes, others are their parts. */
export type SqlNode = { readonly [field: string]: unknown };

/** PostgreSQL's own grammar. Synchronous; a text that it does not take is a value, no fault. */
export interface SqlParser {
  parse(
    text: string,
  ):
    | { readonly ok: true; readonly statements: readonly SqlNode[] }
    | { readonly ok: false; readonly detail: string };
}

/** Longest text that is parsed, in UTF-16 units. */
export const sqlMaxChars = 32_768;
/** Openings without closings. */
const nestingMax = 100;
/** Statements and parts of lists: each makes the tree longer, which the parser hands over as text. */
const partsMax = 4_000;
/** Signs and words that each may nest an expression once more: the tree is printed by recursion. */
const joinsMax = 500;

/** Loads the parser once per process. */
export async function loadSqlParser(): Promise<SqlParser> {
  await loadModule();
  return {
    parse(text) {
      const refusal = refuseSql(text);
      if (refusal !== null) return { ok: false, detail: refusal };
      if (text.trim() === "") return { ok: true, statements: [] };
      try {
        const { stmts = [] } = parseSync(text);
        return {
          ok: true,
          statements: stmts.flatMap(({ stmt }) => (stmt === undefined ? [] : [stmt as SqlNode])),
        };
      } catch (error) {
        return { ok: false, detail: hasSqlDetails(error) ? error.message : "the parser gave up" };
      }
    },
  };
}

/** Why a text is not handed to the parser; null when it is. What it would choke on costs time and leaks memory. */
function refuseSql(text: string): string | null {
  if (text.length > sqlMaxChars) return `longer than ${String(sqlMaxChars)} characters`;
  // The parser ends at a NUL, and what follows would be hidden.
  if (text.includes("\0") || /\p{Surrogate}/u.test(text)) return "a character that is none";
  let depth = 0;
  for (const character of text) {
    if (/[([{]/.test(character)) depth += 1;
    else if (/[)\]}]/.test(character)) depth = Math.max(0, depth - 1);
    if (depth > nestingMax) return "nested too deep";
  }
  if ((text.match(/[,;]/g)?.length ?? 0) > partsMax) return "too many parts";
  const joins = text.match(/[-+*/%^<>=!|&~]+|::|\b(?:and|or|not|union|except|intersect|join|is|like)\b/gi);
  return (joins?.length ?? 0) > joinsMax ? "too many operators" : null;
}
