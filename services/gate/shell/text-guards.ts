import type { OpaqueReason } from "./parsed-command.ts";

/** Longest command line that is read at all, in UTF-16 units. */
export const MAX_TEXT = 64 * 1024;
const MAX_NESTING = 200;

// Blank or invisible to people, ordinary letters to bash, and white space to the grammar.
const LOOKALIKES =
  /[\u0085\u00a0\u00ad\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\ufff9-\uffff]/u;
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f]/;

/** No command has them, and the grammar takes quadratic time for them. */
const OPERATOR_RUN = /[<>|&]{25}/;

/** Why a text is not handed to the grammar at all, or undefined. */
export function refuseText(text: string): OpaqueReason | undefined {
  if (text.length > MAX_TEXT) return { kind: "too_large", detail: `${text.length} characters` };
  const control = CONTROLS.exec(text);
  if (control !== null)
    return { kind: "control_character", detail: `U+${toHex(control[0])} at ${control.index}` };
  const lookalike = LOOKALIKES.exec(text);
  if (lookalike !== null)
    return { kind: "lookalike_character", detail: `U+${toHex(lookalike[0])} at ${lookalike.index}` };
  const surrogate = /\p{Surrogate}/u.exec(text);
  if (surrogate !== null)
    return { kind: "lookalike_character", detail: `half a character at ${surrogate.index}` };
  if (isNestedTooDeep(text) || hasManyFunctions(text)) return { kind: "too_deep", detail: "nested too deep" };
  if (OPERATOR_RUN.test(text)) return { kind: "too_large", detail: "a long run of operators" };
  if (splitsWordOverLines(text))
    return { kind: "grammar_mismatch", detail: "a word continued on the next line" };
  return undefined;
}

function toHex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).padStart(4, "0");
}

/** Heads of functions nest without a bracket to count, and cost the grammar quadratic time. */
function hasManyFunctions(text: string): boolean {
  return (text.match(/\(\s*\)|\bfunction\s/g)?.length ?? 0) > MAX_NESTING;
}

/** Counts openings without closings, ignoring quotes: an upper bound that keeps the grammar away from hostile text. */
function isNestedTooDeep(text: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (character === "(" || character === "{") depth += 1;
    else if (character === ")" || character === "}") depth = Math.max(0, depth - 1);
    if (depth > MAX_NESTING) return true;
  }
  return false;
}

/** bash removes backslash-newline and joins `r\⏎m` to `rm`; the grammar reads two words. With a blank beside it they agree. */
function splitsWordOverLines(text: string): boolean {
  for (let at = text.indexOf("\\\n"); at !== -1; at = text.indexOf("\\\n", at + 2)) {
    let backslashes = 1;
    while (text[at - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) continue;
    const before = text[at - 1] ?? " ";
    const after = text[at + 2] ?? " ";
    if (!/\s/.test(before) && !/\s/.test(after)) return true;
  }
  return false;
}
