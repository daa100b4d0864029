import { hash } from "node:crypto";
import type { Json } from "../../schemas/gate.ts";

/** Deeper values are refused: the walk recurses. */
const canonicalMaxDepth = 256;

/**
 * The RFC 8785 (JCS) form of a JSON value: one text per value, whatever the order of keys or the spelling of numbers.
 * Throws `TypeError` on what JSON cannot hold (NaN, undefined, a lone surrogate) and past 256 levels.
 */
export function toCanonicalJson(value: Json): string {
  return write(value, 0);
}

/** SHA-256 over the canonical form: `sha256:` and hex. */
export function canonicalDigest(value: Json): string {
  return `sha256:${hash("sha256", toCanonicalJson(value), "hex")}`;
}

function write(value: Json, depth: number): string {
  if (depth > canonicalMaxDepth) throw new TypeError("the value is nested too deep");
  if (value === null) return "null";
  switch (typeof value) {
    case "boolean":
      return value ? "true" : "false";
    case "number":
      if (!Number.isFinite(value)) throw new TypeError("a number is not finite");
      // ECMAScript's own number form is the one that RFC 8785 prescribes; -0 becomes 0 in both.
      return JSON.stringify(value);
    case "string":
      return writeText(value);
    case "object":
      break;
    default:
      throw new TypeError(`JSON holds no ${typeof value}`);
  }
  if (isList(value)) return `[${value.map((one) => write(one, depth + 1)).join(",")}]`;
  // Sorted by UTF-16 code units, as the RFC says; that is what `<` compares.
  const names = Object.keys(value).sort();
  const members = names.map((name) => `${writeText(name)}:${write(value[name] as Json, depth + 1)}`);
  return `{${members.join(",")}}`;
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function writeText(text: string): string {
  const json = JSON.stringify(text);
  // JSON writes half a surrogate pair as an escape; only then is the slower look worth it.
  if (json.includes("\\ud") && /\p{Surrogate}/u.test(text)) {
    throw new TypeError("a text holds half a surrogate pair");
  }
  return json;
}
