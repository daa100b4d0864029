import type { Json, JsonObject } from "../../schemas/gate.ts";
import type { Finding } from "./classified.ts";
import type { ToolEntry } from "./policy/policy.ts";
import { toCommandText } from "./classify-command.ts";

/** A finding that the input is not what the tool takes. */
export function unreadable(message: string): Finding {
  return { rule: "classify.input-unreadable", reason: "INPUT_UNREADABLE", message };
}

/** The texts that name the resource, in the order of the entry's fields; a list of words is one command. */
export function readResource(entry: ToolEntry, input: JsonObject, findings: Finding[]): string[] {
  const { kind, fields, required } = entry.resource;
  const named: string[] = [];
  for (const field of fields) {
    if (!Object.hasOwn(input, field)) continue;
    const value = input[field];
    const text =
      typeof value === "string"
        ? value
        : kind === "command" && isWordList(value)
          ? toCommandText(value)
          : null;
    if (text === null) findings.push(unreadable(`the input field \`${field}\` is not a text`));
    else if (text.includes("\0"))
      findings.push(unreadable(`the input field \`${field}\` holds a NUL character`));
    else if (/\p{Surrogate}/u.test(text))
      findings.push(unreadable(`the input field \`${field}\` holds half a character`));
    else if (text !== "") named.push(text);
  }
  if (required && named.length === 0 && findings.length === 0) {
    findings.push(unreadable(`the input names none of: ${fields.join(", ")}`));
  }
  return named;
}

const isWordList = (value: Json | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

/** Everything that an input holds, at any depth, in one pass: to list the keys of a large object takes long. */
export interface InputParts {
  /** Texts with the nearest field that they stand in. */
  readonly texts: readonly { readonly field: string; readonly text: string }[];
  /** A key that readers of JSON treat in different ways: what runs could be another thing than what was judged. */
  readonly holdsPrototypeKey: boolean;
  /** More than can be looked at in time; the rest is not in `texts`. */
  readonly isTooLarge: boolean;
}

/** Most values of an input, at all depths together. */
export const inputPartsMax = 20_000;

/** Visits each value of an input once. */
export function readParts(input: JsonObject): InputParts {
  const texts: { field: string; text: string }[] = [];
  let holdsPrototypeKey = false;
  const open: { readonly field: string; readonly value: Json }[] = [{ field: "", value: input }];
  let seen = 0;
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { field, value } = one;
    if (typeof value === "string") texts.push({ field, text: value });
    if (typeof value !== "object" || value === null) continue;
    holdsPrototypeKey ||= Object.hasOwn(value, "__proto__");
    const isList = Array.isArray(value);
    // Keys alone: to list them with their values takes several times as long.
    const keys = Object.keys(value);
    seen += keys.length;
    if (seen > inputPartsMax) return { texts, holdsPrototypeKey, isTooLarge: true };
    for (const key of keys)
      open.push({
        field: isList ? field : key,
        value: (value as { readonly [key: string]: Json })[key] ?? null,
      });
  }
  return { texts, holdsPrototypeKey, isTooLarge: false };
}

/** Whether an input has a field that the tool's schema does not name, or a list's objects have one. */
export function hasUnknownField(entry: ToolEntry, input: JsonObject): boolean {
  const known = entry.knownFields;
  if (known === undefined) return false;
  const listed = [...known].flatMap((name) => (name.includes("[].") ? [name.replace(/\[\]\..*$/s, "")] : []));
  return Object.keys(input).some((field) => {
    if (!known.has(field)) return true;
    const value = input[field];
    return (
      listed.includes(field) &&
      Array.isArray(value) &&
      value.some(
        (one: Json) =>
          typeof one === "object" &&
          one !== null &&
          Object.keys(one).some((name) => !known.has(`${field}[].${name}`)),
      )
    );
  });
}
