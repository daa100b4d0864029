/** A JSON value, as `JSON.parse` makes it. The SDK's own types name no library, so that a harness needs none to compile. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

/** As deep as the gate takes a tool's input. */
const maxDepth = 64;

/** What is not JSON, or would not reach the gate as it is. */
export class NotJson extends Error {
  override readonly name = "NotJson";
}

/**
 * A frozen copy of a JSON value: what was judged is what runs, whoever still holds the original. Throws `NotJson` on what
 * JSON cannot hold, on a `__proto__` key, which copies lose, and past 64 levels.
 */
export function toFrozenJson(value: unknown): Json {
  return freeze(value, 0);
}

/** The same for an object. */
export function toFrozenObject(value: unknown): JsonObject {
  const frozen = freeze(value, 0);
  if (!isJsonObject(frozen)) throw new NotJson("not an object");
  return frozen;
}

/** True for what `JSON.parse` makes of `{…}`. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Values that were frozen here, so that none is copied twice. */
const known = new WeakSet();

function remember<T extends object>(value: T): T {
  known.add(Object.freeze(value));
  return value;
}

function freeze(value: unknown, depth: number): Json {
  if (depth > maxDepth) throw new NotJson(`nested deeper than ${String(maxDepth)} levels`);
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw new NotJson("a number is not finite");
      return value;
    case "object":
      break;
    default:
      throw new NotJson(`JSON holds no ${typeof value}`);
  }
  if (value === null) return null;
  if (known.has(value)) return value as Json;
  if (Array.isArray(value)) {
    return remember(Array.from(value as unknown[], (item) => freeze(item, depth + 1)));
  }
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw new NotJson("not a plain object");
  if (Object.hasOwn(value, "__proto__")) throw new NotJson("a key is named __proto__");
  // What is undefined is absent, as JSON.stringify has it.
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return remember(Object.fromEntries(members.map(([key, member]) => [key, freeze(member, depth + 1)])));
}
