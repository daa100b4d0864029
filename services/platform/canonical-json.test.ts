import { describe, expect, it } from "vitest";
import type { Json } from "../../schemas/gate.ts";
import { canonicalDigest, toCanonicalJson } from "./canonical-json.ts";

describe("canonical JSON", () => {
  it("writes the example of RFC 8785 as the RFC does", () => {
    const value = JSON.parse(
      `{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],` +
        `"string":"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}`,
    ) as Json;
    expect(toCanonicalJson(value)).toBe(
      `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
        `"string":"€$\\u000f\\nA'B\\"\\\\\\\\\\"/"}`,
    );
  });

  it("sorts keys by UTF-16 code units", () => {
    const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 };
    expect(Object.values(JSON.parse(toCanonicalJson(value)) as Record<string, number>)).toEqual([
      4, 2, 6, 7, 1, 5, 3,
    ]);
  });

  it("gives two spellings of one value one digest", () => {
    expect(canonicalDigest({ a: 1, b: [-0] })).toBe(canonicalDigest(JSON.parse('{"b":[0],"a":1.0}') as Json));
    expect(canonicalDigest({ a: 1 })).not.toBe(canonicalDigest({ a: "1" }));
  });

  it("keeps a key named like the prototype", () => {
    expect(toCanonicalJson(JSON.parse('{"__proto__":{"x":1}}') as Json)).toBe('{"__proto__":{"x":1}}');
  });

  it("refuses what JSON cannot hold", () => {
    for (const bad of [Number.NaN, undefined, "\ud800", { a: Number.POSITIVE_INFINITY }, { a: undefined }]) {
      expect(() => toCanonicalJson(bad as Json)).toThrow(TypeError);
    }
    let deep: Json = 1;
    for (let level = 0; level < 300; level += 1) deep = [deep];
    expect(() => toCanonicalJson(deep)).toThrow(/too deep/);
  });
});
