/** One policy in the text of a Cedar file. Offsets are in UTF-16 units of the file's text. */
export interface CedarPiece {
  readonly start: number;
  readonly text: string;
  /** Where `permit` or `forbid` stands in `text`. */
  readonly effectStart: number;
  readonly effectEnd: number;
}

/**
 * Cuts a Cedar file into its policies, in the order of the file: Cedar's own cutting loses order and place. Only for
 * texts that Cedar has parsed; null when a piece has no effect word, which such a text never has.
 */
export function toCedarPieces(text: string): readonly CedarPiece[] | null {
  const pieces: CedarPiece[] = [];
  let at = skipBlank(text, 0);
  while (at < text.length) {
    const start = at;
    const effect = findEffect(text, at);
    if (effect === null) return null;
    at = findEnd(text, effect.end);
    pieces.push({
      start,
      text: text.slice(start, at),
      effectStart: effect.start - start,
      effectEnd: effect.end - start,
    });
    at = skipBlank(text, at);
  }
  return pieces;
}

/** The piece with another effect word. */
export function withEffect(piece: CedarPiece, effect: "permit" | "forbid"): string {
  return piece.text.slice(0, piece.effectStart) + effect + piece.text.slice(piece.effectEnd);
}

/** Line, from 1, of an offset in UTF-16 units. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

/** Line, from 1, of an offset in bytes of UTF-8, as Cedar counts. */
export function lineAtByte(text: string, byteOffset: number): number {
  const bytes = Buffer.from(text);
  let line = 1;
  for (let at = bytes.indexOf(10); at >= 0 && at < byteOffset; at = bytes.indexOf(10, at + 1)) line += 1;
  return line;
}

/** Past white space and comments. */
function skipBlank(text: string, from: number): number {
  const blank = /(?:\s+|\/\/[^\n]*)*/uy;
  blank.lastIndex = from;
  return blank.test(text) ? blank.lastIndex : from;
}

/** The effect word after the annotations: `@name` with or without `("text")`. */
function findEffect(text: string, from: number): { readonly start: number; readonly end: number } | null {
  let at = from;
  while (text[at] === "@") {
    at = skipBlank(text, endOfWord(text, skipBlank(text, at + 1)));
    if (text[at] !== "(") continue;
    at = skipBlank(text, at + 1);
    if (text[at] !== '"') return null;
    at = skipBlank(text, endOfString(text, at));
    if (text[at] !== ")") return null;
    at = skipBlank(text, at + 1);
  }
  const end = endOfWord(text, at);
  const word = text.slice(at, end);
  return word === "permit" || word === "forbid" ? { start: at, end } : null;
}

function endOfWord(text: string, from: number): number {
  let at = from;
  while (/[A-Za-z0-9_]/.test(text[at] ?? "")) at += 1;
  return at;
}

function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** Past the `;` that ends the policy; strings and comments may hold others. */
function findEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    if (text[at] === ";") return at + 1;
    if (text[at] === '"') at = endOfString(text, at);
    else if (text.startsWith("//", at)) at = skipBlank(text, at);
    else at += 1;
  }
  return at;
}
