import type { Json, JsonObject } from "../json.ts";
import { isJsonObject } from "../json.ts";

/** A condition on one field of a tool's input, by JSON pointer. Every test is linear in the text: no regular expressions. */
export interface Condition {
  readonly field: string;
  readonly is:
    | { readonly present: boolean }
    | { readonly equals: Json }
    | { readonly oneOf: readonly Json[] }
    | { readonly contains: string }
    | { readonly startsWith: string }
    | { readonly endsWith: string }
    /** `*` stands for any run of characters. */
    | { readonly like: string }
    | { readonly above: number }
    | { readonly below: number };
}

/** Which tool calls a handler is for; all that is given has to hold. Elsewhere than at tool calls it is not looked at. */
export interface Match {
  /** Names or patterns such as `mcp.github.*`; absent: every tool. */
  readonly tools?: readonly string[];
  readonly where?: readonly Condition[];
  /** A condition in code. One that throws counts as met, so that its handler is asked. */
  readonly when?: (input: JsonObject) => boolean;
}

/** Whether a call is one that a handler is for. Pure but for `when`. */
export function matches(match: Match | undefined, tool: string, input: JsonObject): boolean {
  if (match === undefined) return true;
  if (match.tools !== undefined && !match.tools.some((pattern) => isLike(tool, pattern))) return false;
  if (match.where !== undefined && !match.where.every((one) => holds(one, input))) return false;
  if (match.when === undefined) return true;
  try {
    return match.when(input);
  } catch {
    return true;
  }
}

/** Whether a text fits a pattern in which `*` is any run of characters. Linear in text times stars. */
export function isLike(text: string, pattern: string): boolean {
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return text === first;
  const last = parts.at(-1) ?? "";
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last))
    return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

function holds({ field, is }: Condition, input: JsonObject): boolean {
  const value = valueAt(input, field);
  if ("present" in is) return (value !== undefined) === is.present;
  if (value === undefined) return false;
  if ("equals" in is) return isSame(value, is.equals);
  if ("oneOf" in is) return is.oneOf.some((one) => isSame(value, one));
  if ("above" in is) return typeof value === "number" && value > is.above;
  if ("below" in is) return typeof value === "number" && value < is.below;
  // A list of words, as some runtimes give commands, is looked at as one text.
  const text = Array.isArray(value) ? value.join(" ") : value;
  if (typeof text !== "string") return false;
  if ("contains" in is) return text.includes(is.contains);
  if ("startsWith" in is) return text.startsWith(is.startsWith);
  if ("endsWith" in is) return text.endsWith(is.endsWith);
  return isLike(text, is.like);
}

/** The value at a JSON pointer; undefined: there is none. */
function valueAt(input: JsonObject, pointer: string): Json | undefined {
  let value: Json | undefined = input;
  for (const token of pointer.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) value = /^\d+$/.test(key) ? (value as readonly Json[])[Number(key)] : undefined;
    else if (isJsonObject(value) && Object.hasOwn(value, key)) value = value[key];
    else return undefined;
  }
  return value;
}

function isSame(left: Json, right: Json): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    const others = right as readonly Json[];
    return (
      left.length === others.length && left.every((item, at) => isSame(item as Json, others[at] as Json))
    );
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isSame(left[key] as Json, right[key] as Json))
  );
}
