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
    else if (text !== "") named.push(text);
  }
  if (required && named.length === 0 && findings.length === 0) {
    findings.push(unreadable(`the input names none of: ${fields.join(", ")}`));
  }
  return named;
}

const isWordList = (value: Json | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

/** Every text of an input, at any depth. */
export function collectTexts(input: JsonObject): string[] {
  const texts: string[] = [];
  walk(input, (one) => {
    if (typeof one === "string") texts.push(one);
    return false;
  });
  return texts;
}

/** A key that readers of JSON treat in different ways: what runs could be another thing than what was judged. */
export function holdsPrototypeKey(input: JsonObject): boolean {
  return walk(input, (one) => typeof one === "object" && one !== null && Object.hasOwn(one, "__proto__"));
}

/** Visits each value until a visit says that it found what it looks for; whether one did. */
function walk(input: Json, visit: (one: Json) => boolean): boolean {
  const open: Json[] = [input];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (visit(one)) return true;
    if (typeof one !== "object" || one === null) continue;
    // One by one: as arguments of one call a long list would not fit on the stack.
    for (const child of Object.values<Json>(one)) open.push(child);
  }
  return false;
}
