import type { Json, JsonObject } from "../json.ts";
import { NotJson, isJsonObject, toFrozenJson, toFrozenObject } from "../json.ts";
import type { PolicyPoint, ReplyKey } from "./hook-points.ts";
import { voices } from "./hook-points.ts";

/** A handler's reply, checked. */
export interface Reply {
  readonly deny?: string;
  readonly ask?: string;
  readonly rewrite?: JsonObject | string;
  readonly context?: string;
  readonly block?: string;
  readonly replace?: Json;
  readonly goOn?: string;
}

/** Not a reply of its point: another key, another type, an empty reason. */
export class Garbage extends Error {
  override readonly name = "Garbage";
}

/** Reads what a handler returned; null: no opinion. Throws `Garbage`. Pure. */
export function readReply(point: PolicyPoint, returned: unknown): Reply | null {
  if (returned === undefined || returned === null) return null;
  if (!isJsonObject(returned)) throw new Garbage("a reply is an object, or nothing");
  const { keys } = voices[point];
  const read: Partial<Record<ReplyKey, Json>> = {};
  for (const [key, value] of Object.entries(returned)) {
    if (value === undefined) continue;
    if (!(keys as readonly string[]).includes(key)) throw new Garbage(`a reply at ${point} has no "${key}"`);
    read[key as ReplyKey] = readPart(point, key as ReplyKey, value);
  }
  return Object.keys(read).length === 0 ? null : (read as Reply);
}

function readPart(point: PolicyPoint, key: ReplyKey, value: unknown): Json {
  try {
    if (key === "replace") return toFrozenJson(value);
    if (key === "rewrite" && point === "PreToolUse") return toFrozenObject(value);
  } catch (error) {
    if (error instanceof NotJson) throw new Garbage(`"${key}" is ${error.message}`, { cause: error });
    throw error;
  }
  if (typeof value !== "string") throw new Garbage(`"${key}" is a text`);
  if (value.trim() === "" && key !== "rewrite") throw new Garbage(`"${key}" says why, or what`);
  return value;
}
