import { describe, expect, it } from "vitest";
import type { AvroField, AvroRecord } from "./avro-json.ts";
import { mustUnderstandFields, unknownMustUnderstand } from "./must-understand.ts";

const record = (name: string, ...fields: AvroField[]): AvroRecord => ({
  type: "record",
  name,
  namespace: "fabric",
  fields,
});
const limit: AvroField = { name: "limit", type: ["null", "long"], default: null, must_understand: true };
const plain: AvroField = { name: "plain", type: "string" };

describe("unknownMustUnderstand", () => {
  it("names the path of what the reader lacks", () => {
    const writer = record("Outer", plain, {
      name: "inner",
      type: ["null", record("Inner", limit)],
      default: null,
    });
    const reader = record("Outer", plain, {
      name: "inner",
      type: ["null", record("Inner", plain)],
      default: null,
    });
    expect(unknownMustUnderstand(writer, reader)).toEqual(["inner.limit"]);
    expect(unknownMustUnderstand(writer, writer)).toEqual([]);
    expect(mustUnderstandFields(writer)).toEqual(["inner.limit"]);
  });

  it("follows a type that is used by its name, and ends on one that holds itself", () => {
    const tree = record("Tree", limit, { name: "child", type: ["null", "Tree"], default: null });
    expect(
      unknownMustUnderstand(tree, record("Tree", { name: "child", type: ["null", "Tree"], default: null })),
    ).toEqual(["limit"]);
    const pair = record("Pair", { name: "one", type: record("Item", limit) }, { name: "two", type: "Item" });
    expect(unknownMustUnderstand(pair, record("Pair", { name: "two", type: record("Item", plain) }))).toEqual(
      ["one.limit", "two.limit"],
    );
  });

  it("lets pass what the reader has, whatever its mark there", () => {
    const { must_understand: _mark, ...unmarked } = limit;
    expect(unknownMustUnderstand(record("A", limit), record("A", unmarked))).toEqual([]);
  });

  it("does not take a namespace written out for another name", () => {
    const inner = record("Inner", limit);
    const { namespace: _inherited, ...short } = inner;
    const writer = record("Outer", { name: "inner", type: inner });
    const reader = record("Outer", { name: "inner", type: short });
    expect(unknownMustUnderstand(writer, reader)).toEqual([]);
  });
});
