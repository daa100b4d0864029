import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../schemas/gate.ts";
import { compileJsonSchema } from "./json-schema.ts";

function problemsOf(schema: JsonObject, input: JsonObject): readonly string[] {
  const compiled = compileJsonSchema(schema);
  if (!compiled.ok) throw new Error(compiled.problem);
  return compiled.inputProblems(input);
}
const textField = (schema: JsonObject): JsonObject => ({
  type: "object",
  properties: { a: { type: "string", ...schema } },
});

describe("a tool's schema", () => {
  it("says in words what is wrong with an input, and nothing when it fits", () => {
    const schema = { type: "object", required: ["command"], properties: { command: { type: "string" } } };
    expect(problemsOf(schema, { command: "ls" })).toEqual([]);
    expect(problemsOf(schema, {})).toEqual(["`input` must have required property 'command'"]);
    expect(problemsOf(schema, { command: 1 })).toEqual(["`input/command` must be string"]);
  });

  it("is of the draft 2020-12, with references inside", () => {
    const schema = {
      type: "object",
      properties: { list: { type: "array", prefixItems: [{ $ref: "#/$defs/word" }], items: false } },
      $defs: { word: { type: "string", maxLength: 3 } },
      unevaluatedProperties: false,
    };
    expect(problemsOf(schema, { list: ["abc"] })).toEqual([]);
    expect(problemsOf(schema, { list: ["abcd"] })).toHaveLength(1);
    expect(problemsOf(schema, { list: ["abc", 1] })).toHaveLength(1);
    expect(problemsOf(schema, { other: 1 })).toHaveLength(1);
  });

  it("knows one `$id` in two schemas as two", () => {
    const schema = (type: string): JsonObject => ({
      $id: "https://example.com/a",
      type: "object",
      properties: { a: { type } },
    });
    expect(problemsOf(schema("string"), { a: "x" })).toEqual([]);
    expect(problemsOf(schema("number"), { a: "x" })).toHaveLength(1);
  });

  it("keeps two patterns apart", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "string", pattern: "^a+$" }, b: { type: "string", pattern: "^b+$" } },
      patternProperties: { "^x_": { type: "number" } },
    };
    expect(problemsOf(schema, { a: "aa", b: "bb", x_1: 1 })).toEqual([]);
    expect(problemsOf(schema, { a: "bb" })).toHaveLength(1);
    expect(problemsOf(schema, { b: "aa" })).toHaveLength(1);
    expect(problemsOf(schema, { x_1: "1" })).toHaveLength(1);
  });

  it("checks formats", () => {
    expect(problemsOf(textField({ format: "uri" }), { a: "https://example.com/x" })).toEqual([]);
    expect(problemsOf(textField({ format: "uri" }), { a: "no address" })).toHaveLength(1);
    expect(problemsOf(textField({ format: "date" }), { a: "2026-02-30" })).toHaveLength(1);
    expect(problemsOf(textField({ format: "email" }), { a: "a@example.com" })).toEqual([]);
  });

  it("is checked in a moment, whatever the input", () => {
    const started = performance.now();
    const long = "a".repeat(60_000);
    expect(problemsOf(textField({ pattern: "^(a+)+$" }), { a: `${long}!` })).toHaveLength(1);
    expect(problemsOf(textField({ pattern: "^(a|aa)*$" }), { a: `${long}!` })).toHaveLength(1);
    const formats = [
      "date",
      "time",
      "date-time",
      "duration",
      "email",
      "hostname",
      "ipv4",
      "ipv6",
      "uuid",
      "uri",
    ];
    for (const format of [...formats, "uri-reference"]) {
      for (const piece of ["a", "1", "1:", "a.", "a-", "%41", "/", "P1", "@", ":", "[", "0000-"]) {
        for (const length of [60, 300, 2040, 50_000]) {
          const text = piece.repeat(length / piece.length);
          for (const end of ["", "!", "@", "\n"]) problemsOfKept(format, { a: text + end });
        }
      }
    }
    expect(performance.now() - started).toBeLessThan(15_000);
  }, 30_000);

  it("says that it cannot check what is too long, and never throws", () => {
    expect(problemsOf(textField({ pattern: "x" }), { a: "x".repeat(65_537) })).toEqual([
      "the input cannot be checked: a text is longer than 65536 characters",
    ]);
    const toDeep = (): JsonObject => {
      let deep: JsonObject = {};
      for (let depth = 0; depth < 100_000; depth += 1) deep = { a: deep };
      return deep;
    };
    expect(problemsOf({ type: "object", properties: { a: { type: "object" } } }, toDeep())).toEqual([]);
    const unique = { type: "object", properties: { a: { type: "array", maxItems: 3, uniqueItems: true } } };
    expect(problemsOf(unique, { a: [toDeep(), toDeep()] })).toEqual([
      "the input cannot be checked: Maximum call stack size exceeded",
    ]);
  });
});

const kept = new Map<string, (input: JsonObject) => readonly string[]>();
/** Each format is compiled once. */
function problemsOfKept(format: string, input: JsonObject): readonly string[] {
  let check = kept.get(format);
  if (check === undefined) {
    const compiled = compileJsonSchema(textField({ format }));
    if (!compiled.ok) throw new Error(compiled.problem);
    check = compiled.inputProblems;
    kept.set(format, check);
  }
  return check(input);
}
