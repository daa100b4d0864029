import type { Word } from "./parsed-command.ts";
import { hidesExpansion } from "./quoting.ts";
import type { SyntaxNode } from "./syntax-tree.ts";

const EXPANSIONS = /^(command_substitution|simple_expansion|expansion|arithmetic_expansion)$/;

export type HereDocument = {
  /** Quoted delimiter: the body is plain text. */
  readonly isQuoted: boolean;
  readonly body: SyntaxNode | undefined;
  /** What the command reads; not fixed when something in it is expanded. */
  readonly text: Word;
  /** The grammar and bash do not agree about it, or back-ticks hide in it. */
  readonly fault: "grammar_mismatch" | "heredoc_backtick" | undefined;
};

/** Reads a here-document, and finds its end a second time as bash does, because the grammar errs in silence. */
export function toHereDocument(redirect: SyntaxNode, source: string): HereDocument {
  const child = (type: string): SyntaxNode | undefined =>
    redirect.children.find((node) => node.type === type);
  const start = child("heredoc_start");
  const body = child("heredoc_body");
  const end = child("heredoc_end");
  const written = start === undefined ? "" : source.slice(start.start, start.end);
  const isQuoted = /['"\\]/.test(written);
  const delimiter = written.replace(/['"]/g, "").replace(/\\(.)/g, "$1");
  const stripsTabs = redirect.children.some(({ type }) => type === "<<-");
  const broken = (fault: HereDocument["fault"]): HereDocument => ({
    isQuoted,
    body,
    fault,
    text: { kind: "unresolved", reason: "syntax", source: written, prefix: "" },
  });
  if (start === undefined || end === undefined || /\$/.test(written) || delimiter === "")
    return broken("grammar_mismatch");
  const lineEnd = source.indexOf("\n", start.end);
  const isRestOnLine = redirect.children.every(
    (node) => node === body || node === end || node.end <= lineEnd + 1,
  );
  if (lineEnd === -1 || !isRestOnLine) return broken("grammar_mismatch");
  let at = lineEnd + 1;
  const lines: string[] = [];
  for (;;) {
    const next = source.indexOf("\n", at);
    const line = source.slice(at, next === -1 ? source.length : next);
    const bare = stripsTabs ? line.replace(/^\t+/, "") : line;
    // In an unquoted body a backslash joins this line to the next, and the joined line is no delimiter.
    const joins = !isQuoted && /(^|[^\\])(\\\\)*\\$/.test(line);
    if (bare === delimiter) break;
    if (next === -1 || joins) return broken("grammar_mismatch");
    lines.push(bare);
    at = next + 1;
  }
  const endText = source.slice(end.start, end.end).replace(/^\t+/, "").trimEnd();
  if (endText !== delimiter || end.end < at || end.start > at + source.slice(at).search(/[^\t]|$/))
    return broken("grammar_mismatch");
  const raw = lines.map((line) => `${line}\n`).join("");
  if (isQuoted) return { isQuoted, body, fault: undefined, text: { kind: "literal", text: raw } };
  let hidden = "";
  let from = lineEnd + 1;
  let isExpanded = false;
  for (const node of body?.children ?? []) {
    if (!EXPANSIONS.test(node.type)) continue;
    isExpanded = true;
    if (node.start < from) return broken("grammar_mismatch");
    hidden += `${source.slice(from, node.start)} `;
    from = node.end;
  }
  hidden += source.slice(from, at);
  if (hidesExpansion(hidden)) return broken("heredoc_backtick");
  return {
    isQuoted,
    body,
    fault: undefined,
    text: isExpanded
      ? { kind: "unresolved", reason: "variable", source: raw, prefix: "" }
      : { kind: "literal", text: raw.replace(/\\([$`\\])/g, "$1") },
  };
}
