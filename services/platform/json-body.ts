import { Fault } from "../../schemas/faults.ts";

/** Nesting that a body may have: no hook of a real client passes 20. */
export const bodyMaxDepth = 64;

/** Parses a body. Throws BODY_NOT_JSON, also for one that nests deeper than `bodyMaxDepth` or is no UTF-8. */
export function parseJsonBody(raw: Buffer): unknown {
  const depth = nestingOf(raw);
  if (depth > bodyMaxDepth)
    throw new Fault("BODY_NOT_JSON", `it nests deeper than ${String(bodyMaxDepth)} levels`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(raw);
  } catch (error) {
    throw new Fault("BODY_NOT_JSON", "it is not UTF-8", { cause: error });
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's message quotes the body, which may hold a secret.
    throw new Fault("BODY_NOT_JSON");
  }
}

/** Why a body's bytes are not what this server reads, UTF-8 without a coding; null: they may be. */
export function whyUnreadable(type: string | undefined, encoding: string | undefined): string | null {
  if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity")
    return "a body is sent without a content-encoding";
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type ?? "")?.[1];
  return charset === undefined || /^utf-?8$/i.test(charset) ? null : "a body is sent in UTF-8";
}

const quote = 0x22;
const backslash = 0x5c;

/** Deepest nesting of brackets outside texts: one pass over the bytes, before any parser builds a value. */
function nestingOf(raw: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inText = false;
  for (let at = 0; at < raw.length; at += 1) {
    const one = raw[at];
    if (inText) {
      if (one === backslash) at += 1;
      else if (one === quote) inText = false;
      continue;
    }
    if (one === quote) inText = true;
    else if (one === 0x7b || one === 0x5b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (one === 0x7d || one === 0x5d) depth -= 1;
  }
  return deepest;
}
