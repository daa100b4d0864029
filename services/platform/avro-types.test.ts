import { describe, expect, it } from "vitest";
import { timestampMaxMs, toType } from "./avro-types.ts";

/** avsc's results are `any`. */
const read = (
  type: ReturnType<typeof toType>,
  bytes: Buffer,
  writer?: ReturnType<typeof toType>,
): Record<string, unknown> =>
  type.fromBuffer(bytes, writer === undefined ? undefined : type.createResolver(writer)) as Record<
    string,
    unknown
  >;
const record = (...fields: object[]): ReturnType<typeof toType> =>
  toType({ type: "record", name: "R", fields });
const timestamp = { type: "long", logicalType: "timestamp-millis" };

describe("long", () => {
  it.each([
    0n,
    -1n,
    1n,
    63n,
    64n,
    -64n,
    -65n,
    2n ** 31n,
    2n ** 48n,
    -(2n ** 48n),
    2n ** 52n,
    -4503599627370497n,
    -4503599627370499n,
    2n ** 53n + 1n,
    -(2n ** 53n) - 1n,
    2n ** 55n - 1n,
    2n ** 56n,
    2n ** 63n - 1n,
    -(2n ** 63n),
  ])("keeps %s exactly, also inside a union and through a resolver", (value) => {
    const type = record({ name: "a", type: "long" }, { name: "b", type: ["null", "long"], default: null });
    const bytes = type.toBuffer({ a: value, b: value });
    expect({ ...read(type, bytes) }).toEqual({ a: value, b: value });
    expect({ ...read(type, bytes, type) }).toEqual({ a: value, b: value });
  });

  it("writes the same bytes as avsc where avsc is exact", async () => {
    const { default: avsc } = await import("avsc");
    const plain = avsc.Type.forSchema("long");
    for (const value of [
      0,
      -1,
      1,
      63,
      64,
      -64,
      -65,
      300,
      2 ** 31,
      -(2 ** 31),
      2 ** 40,
      -(2 ** 40),
      2 ** 52,
    ]) {
      expect(toType("long").toBuffer(BigInt(value))).toEqual(plain.toBuffer(value));
    }
  });

  it("refuses what does not fit 64 bits, numbers, and varints that are too long", () => {
    const type = toType("long");
    expect(type.isValid(2n ** 63n)).toBe(false);
    expect(type.isValid(-(2n ** 63n) - 1n)).toBe(false);
    expect(type.isValid(1)).toBe(false);
    expect(() => read(type, Buffer.from("ffffffffffffffffff02", "hex"))).toThrow(/64 bits/);
    expect(() => read(type, Buffer.from("80808080808080808080808001", "hex"))).toThrow(/64 bits/);
  });

  it("reads an int that an earlier version wrote", () => {
    const writer = record({ name: "a", type: "int" });
    const reader = record({ name: "a", type: "long" });
    expect(read(reader, writer.toBuffer({ a: -7 }), writer).a).toBe(-7n);
  });
});

describe("timestamp-millis", () => {
  it("reads a timestamp inside a union with the same schema as itself (mtth/avsc#151)", () => {
    const make = (): ReturnType<typeof toType> =>
      record({ name: "at", type: ["null", timestamp], default: null });
    const reader = make();
    const writer = make();
    const at = Date.UTC(2026, 10, 30);
    expect(read(reader, writer.toBuffer({ at }), writer).at).toBe(at);
    expect(read(reader, writer.toBuffer({ at: null }), writer).at).toBeNull();
  });

  it.each([-1, 1.5, timestampMaxMs + 1, Number.NaN, Infinity])("refuses to write %s", (at) => {
    expect(record({ name: "at", type: timestamp }).isValid({ at })).toBe(false);
    expect(() => record({ name: "at", type: timestamp }).toBuffer({ at })).toThrow(/timestamp/);
  });

  it.each([-1n, BigInt(timestampMaxMs) + 1n, 2n ** 63n - 1n, -(2n ** 63n)])("refuses to read %s", (at) => {
    const bytes = record({ name: "at", type: "long" }).toBuffer({ at });
    expect(() => read(record({ name: "at", type: timestamp }), bytes)).toThrow();
  });

  it("takes the bounds themselves", () => {
    const type = record({ name: "at", type: timestamp });
    for (const at of [0, timestampMaxMs]) expect(read(type, type.toBuffer({ at })).at).toBe(at);
  });
});

describe("holes of avsc", () => {
  it("takes no name of Object.prototype for a symbol", () => {
    const type = record({
      name: "e",
      type: { type: "enum", name: "E", symbols: ["unknown", "x"], default: "unknown" },
    });
    expect(type.isValid({ e: "constructor" })).toBe(false);
    expect(() => type.toBuffer({ e: "toString" })).toThrow();
    expect(read(type, type.toBuffer({ e: "x" })).e).toBe("x");
  });

  it("refuses an int of more than 32 bits instead of returning a large number", () => {
    expect(() => read(toType("int"), Buffer.from("feffffffff7f", "hex"))).toThrow(/32 bits/);
  });

  it("does not allocate by a count that garbage names, read or skipped", () => {
    const hostile = Buffer.from("80808080808020", "hex");
    const array = { type: "array", items: "string" };
    const map = { type: "map", values: "string" };
    for (const type of [array, map]) {
      expect(() => read(toType(type), hostile)).toThrow(/longer/);
      const writer = record({ name: "a", type }, { name: "b", type: "int" });
      const reader = record({ name: "b", type: "int" });
      expect(() => read(reader, hostile, writer)).toThrow(/longer/);
    }
  });

  it("round-trips arrays and maps, also through a resolver, and keeps a key named __proto__", () => {
    const type = record(
      { name: "a", type: { type: "array", items: "long" } },
      { name: "m", type: { type: "map", values: "string" } },
    );
    const m = JSON.parse('{"__proto__":"x","k":"v"}') as object;
    const bytes = type.toBuffer({ a: [1n, 2n], m });
    for (const value of [read(type, bytes), read(type, bytes, type)]) {
      expect(value["a"]).toEqual([1n, 2n]);
      expect(Object.keys(value["m"] as object)).toEqual(["__proto__", "k"]);
    }
  });

  it("writes a lone surrogate as U+FFFD, so that every reader of UTF-8 can read it", () => {
    const type = toType("string");
    expect(type.fromBuffer(type.toBuffer("a\ud800b"))).toBe("a\ufffdb");
    expect(type.fromBuffer(type.toBuffer("😀"))).toBe("😀");
    const long = `${"x".repeat(100)}\udc00`;
    expect(type.fromBuffer(type.toBuffer(long))).toBe(`${"x".repeat(100)}\ufffd`);
  });

  it("refuses a union whose branches JavaScript cannot tell apart", () => {
    expect(() =>
      toType({ type: "record", name: "U", fields: [{ name: "u", type: ["int", "float"] }] }),
    ).toThrow(/ambiguous/);
  });
});
