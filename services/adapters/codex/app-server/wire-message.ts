import { isJsonObject } from "../../../platform/payload-fields.ts";

/** A JSON object of the wire. */
export type WireObject = Readonly<Record<string, unknown>>;

/** One message of the App Server's wire: JSON-RPC without its version field. */
export type WireMessage =
  | {
      readonly kind: "request";
      readonly id: string | number;
      readonly method: string;
      readonly params: WireObject;
    }
  | { readonly kind: "notification"; readonly method: string; readonly params: WireObject }
  | { readonly kind: "reply"; readonly id: string | number; readonly result: unknown };

/** Reads a line; null: it is no message, and nothing is made of it. */
export function readMessage(line: string): WireMessage | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isJsonObject(parsed)) return null;
  const { id, method, params } = parsed;
  const isId = typeof id === "string" || typeof id === "number";
  if (typeof method === "string") {
    const given = isJsonObject(params) ? params : {};
    return isId
      ? { kind: "request", id, method, params: given }
      : { kind: "notification", method, params: given };
  }
  return isId ? { kind: "reply", id, result: parsed["result"] ?? null } : null;
}

/** A text of an object, or undefined. */
export function textAt(value: unknown, key: string): string | undefined {
  const found = isJsonObject(value) ? value[key] : undefined;
  return typeof found === "string" ? found : undefined;
}

/** An object of an object, or an empty one. */
export function objectAt(value: unknown, key: string): WireObject {
  const found = isJsonObject(value) ? value[key] : undefined;
  return isJsonObject(found) ? found : {};
}
