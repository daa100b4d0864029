import type { AnySchemaObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import * as ajvFormats from "ajv-formats/dist/formats.js";
import { RE2JS } from "re2js";
import type { JsonObject } from "../../../schemas/gate.ts";

type InputProblems = (input: JsonObject) => readonly string[];
export type CompiledSchema =
  | { readonly ok: true; readonly inputProblems: InputProblems }
  | { readonly ok: false; readonly problem: string };

/** Formats that are checked, and the longest text that one is checked on; another format is a mistake. */
const formatMaxChars = {
  date: 64,
  time: 64,
  "date-time": 64,
  duration: 64,
  email: 320,
  hostname: 253,
  ipv4: 64,
  ipv6: 64,
  uuid: 64,
  uri: 2048,
  "uri-reference": 2048,
} as const;
/** Comparing each item with each other takes quadratic time. */
const uniqueItemsMax = 1000;
/** As for other patterns of a bundle: longer texts are not matched, and what cannot be judged is a problem. */
const matchedTextMaxChars = 65_536;

/** For a tool without a schema. */
export const noInputProblems: InputProblems = () => [];

/** Compiles a tool's JSON Schema (2020-12). The check stops at the first problem, and is linear in the input. */
export function compileJsonSchema(schema: JsonObject): CompiledSchema {
  const refused = whatIsRefused(schema);
  if (refused !== null) return { ok: false, problem: refused };
  try {
    // The meta-schema takes longer to compile than all schemas of a bundle: once in a process is enough.
    metaAjv ??= newAjv(true);
    void metaAjv.validateSchema(schema, true);
    // One instance for each schema: an `$id` in one cannot reach into another.
    const validate = newAjv(false).compile(schema as AnySchemaObject);
    return {
      ok: true,
      inputProblems(input) {
        try {
          if (validate(input)) return [];
          return (validate.errors ?? []).map(
            ({ instancePath, message }) =>
              `\`input${instancePath}\` ${message ?? "is not as its schema says"}`,
          );
        } catch (error) {
          return [`the input cannot be checked: ${error instanceof Error ? error.message : String(error)}`];
        }
      },
    };
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) };
  }
}

let metaAjv: Ajv2020 | null = null;

function newAjv(validateSchema: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    validateSchema,
    strict: true,
    strictTypes: false,
    strictRequired: false,
    strictTuples: false,
    allErrors: false,
    logger: false,
    unicodeRegExp: true,
    code: { regExp: Object.assign(toLinearPattern, { code: "linear pattern" }) },
  });
  for (const [name, maxChars] of Object.entries(formatMaxChars)) {
    const format: unknown = ajvFormats.fullFormats[name as keyof typeof formatMaxChars];
    const check = format instanceof RegExp ? (text: string) => format.test(text) : toValidate(format);
    ajv.addFormat(name, (text: string) => text.length <= maxChars && check(text));
  }
  // The meta-schema asks for it; that it can be compiled is found when the pattern is.
  ajv.addFormat("regex", true);
  return ajv;
}

function toValidate(format: unknown): (text: string) => boolean {
  if (typeof format === "function") return format as (text: string) => boolean;
  return toValidate((format as { readonly validate: unknown }).validate);
}

/** In place of `RegExp`, which takes exponential time on some texts. */
function toLinearPattern(source: string): { test: (text: string) => boolean; toString: () => string } {
  const pattern = RE2JS.compile(source);
  return {
    test(text) {
      if (text.length <= matchedTextMaxChars) return pattern.test(text);
      throw new RangeError(`a text is longer than ${String(matchedTextMaxChars)} characters`);
    },
    // Compiled schemas keep one pattern for each name.
    toString: () => source,
  };
}

/** Keywords with which a small input takes long, or that reach outside. */
function whatIsRefused(schema: JsonObject): string | null {
  const refs = new Set<string>();
  let problem: string | null = null;
  walk(schema, (node) => {
    for (const key of ["$dynamicRef", "$recursiveRef"]) {
      if (Object.hasOwn(node, key)) problem ??= `\`${key}\` is not taken`;
    }
    const ref = node["$ref"];
    if (typeof ref === "string") {
      refs.add(ref);
      if (!/^#\/\$defs\/[^/]+$/.test(ref)) problem ??= `\`$ref: ${ref}\` has to point to \`#/$defs/<name>\``;
    }
    const { uniqueItems, maxItems } = node;
    if (uniqueItems === true && !(typeof maxItems === "number" && maxItems <= uniqueItemsMax)) {
      problem ??= `\`uniqueItems\` needs \`maxItems\` of at most ${String(uniqueItemsMax)}`;
    }
  });
  return problem ?? whatIsRecursive(schema);
}

/** A schema that holds itself can take exponential time in the depth of an input. */
function whatIsRecursive(schema: JsonObject): string | null {
  const defs = (schema["$defs"] ?? {}) as JsonObject;
  const done = new Set<string>();
  const find = (name: string, above: readonly string[]): string | null => {
    if (above.includes(name)) return `\`$defs.${name}\` refers to itself`;
    if (done.has(name)) return null;
    let found: string | null = null;
    walk(defs[name], (node) => {
      const ref = node["$ref"];
      if (typeof ref === "string") found ??= find(ref.slice("#/$defs/".length), [...above, name]);
    });
    done.add(name);
    return found;
  };
  for (const name of Object.keys(defs)) {
    const found = find(name, []);
    if (found !== null) return found;
  }
  return null;
}

function walk(node: unknown, look: (node: JsonObject) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) look(node as JsonObject);
  for (const child of Object.values(node)) walk(child, look);
}
