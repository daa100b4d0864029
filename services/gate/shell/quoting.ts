/** Characters of a word with their quoting; only unquoted ones can be globs, braces or a tilde. */
export type Piece = { readonly text: string; readonly isQuoted: boolean };

/** Whether a word of the grammar hides an expansion that the grammar has missed. */
export function hidesExpansion(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === "\\") at += 1;
    else if (character === "`") return true;
    else if (character === "$" && /[({[A-Za-z_0-9@*#?!$-]/.test(text[at + 1] ?? "")) return true;
  }
  return false;
}

/** Whether a word of the grammar has an unquoted character inside that ends a word for bash. */
export function endsWord(text: string): boolean {
  return /[\s;|&<>]/.test(text.replace(/\\[\s\S]/g, ""));
}

/** Text outside of quotes: a backslash quotes the next character, backslash-newline vanishes. */
export function toUnquotedPieces(text: string): Piece[] {
  const pieces: Piece[] = [];
  let plain = "";
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== "\\") {
      plain += text[at] ?? "";
      continue;
    }
    if (plain !== "") pieces.push({ text: plain, isQuoted: false });
    plain = "";
    at += 1;
    if (text[at] !== "\n") pieces.push({ text: text[at] ?? "\\", isQuoted: true });
  }
  if (plain !== "") pieces.push({ text: plain, isQuoted: false });
  return pieces;
}

/** Text between double quotes. */
export function toDoubleQuoted(text: string): string {
  return text.replace(/\\([$`"\\\n])/g, (_, character: string) => (character === "\n" ? "" : character));
}

/** Text between back-ticks loses one level of backslashes before it is read as code. */
export function toBacktickCode(text: string, isInDoubleQuotes: boolean): string {
  return text.replace(isInDoubleQuotes ? /\\([$`\\"])/g : /\\([$`\\])/g, "$1");
}

const ANSI_LETTERS: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  e: "\x1b",
  E: "\x1b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "?": "?",
};

/** Decodes the inside of `$'…'`; undefined when it makes bytes that are no ASCII. */
export function toAnsiText(text: string): string | undefined {
  const escape =
    /\\(?:x\{([0-9A-Fa-f]{1,8})\}|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c([\s\S])|([\s\S]))/g;
  let out = "";
  let from = 0;
  for (const match of text.matchAll(escape)) {
    out += text.slice(from, match.index);
    from = match.index + match[0].length;
    const [, braced, hex, short, long, octal, control, letter] = match;
    const code = braced ?? hex ?? short ?? long;
    if (letter !== undefined) {
      out += ANSI_LETTERS[letter] ?? `\\${letter}`;
      continue;
    }
    const point =
      code !== undefined
        ? parseInt(code, 16)
        : octal !== undefined
          ? parseInt(octal, 8) & 0xff
          : (control ?? "@").charCodeAt(0) & 0x1f;
    // bash ends the string at a NUL.
    if (point === 0) return out;
    if (point > 0x7f) return undefined;
    out += String.fromCharCode(point);
  }
  return out + text.slice(from);
}
