import { describe, expect, it } from "vitest";
import { z } from "zod";
import { actionInputField, identifierField, readFields, sortNested } from "./payload-fields.ts";

const rules = {
  bearing: { id: identifierField, input: actionInputField.optional() },
  metadata: { mode: z.enum(["a", "b"]), note: z.string() },
  dropped: ["log"],
};
const parse = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

describe("fields of a payload", () => {
  it("are each read, dropped by name, or reported as unknown", () => {
    expect(readFields(parse('{"id":"1","mode":"a","log":1,"new/~":2,"__proto__":{"x":1}}'), rules)).toEqual({
      ok: true,
      bearing: { id: "1" },
      metadata: { mode: "a" },
      dropped: ["/log"],
      unknownFields: ["/new~1~0", "/__proto__"],
    });
  });

  it("of mere metadata are reported and left out when their value is not known", () => {
    expect(readFields(parse('{"id":"1","mode":"z","note":7}'), rules)).toMatchObject({
      metadata: {},
      unknownFields: ["/mode", "/note"],
    });
  });

  it.each([
    ["{}", "missing_field", "/id"],
    ['{"id":7}', "wrong_type", "/id"],
    ['{"id":null}', "wrong_type", "/id"],
    ['{"id":""}', "unknown_value", "/id"],
    ['{"id":"a\\u0000"}', "unknown_value", "/id"],
    ['{"id":"\\ud800"}', "unknown_value", "/id"],
    ['{"id":"1","input":[]}', "wrong_type", "/input"],
    ['{"id":"1","input":null}', "wrong_type", "/input"],
    ['{"id":"1","input":"x"}', "wrong_type", "/input"],
    ['{"id":"1","input":{"a":{"__proto__":{}}}}', "unknown_value", "/input"],
    ['{"id":"1","input":{"a":1e999}}', "unknown_value", "/input"],
    [`{"id":"1","input":{"a":${"[".repeat(5000)}${"]".repeat(5000)}}}`, "unknown_value", "/input"],
  ])("that bear the action make %s unreadable: %s at %s", (text, problem, field) => {
    expect(readFields(parse(text), rules)).toEqual({ ok: false, problem, field });
  });

  it("are not taken from the prototype", () => {
    expect(readFields(Object.create({ id: "1" }) as Record<string, unknown>, rules)).toMatchObject({
      ok: false,
    });
  });

  it("are listed up to a number and counted beyond", () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`k${String(at)}`, at]));
    const read = readFields({ id: "1", ...many }, rules);
    expect(read.ok && [read.unknownFields.length, read.unknownFields.at(-1)]).toEqual([64, "/* (937 more)"]);
  });

  it("inside a container are accounted for too", () => {
    expect(
      sortNested(
        "/calls",
        [
          { name: "a", input: 1 },
          { name: "b", odd: 2 },
        ],
        ["name"],
        ["input"],
      ),
    ).toEqual({
      dropped: ["/calls/*/input"],
      unknownFields: ["/calls/*/odd"],
    });
    expect(sortNested("/one", { name: "a", odd: 1 }, ["name"], [])).toEqual({
      dropped: [],
      unknownFields: ["/one/odd"],
    });
  });
});
