import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskJson, maskText } from "../../services/platform/mask.ts";

const fragment = fc.oneof(
  fc.constantFrom(
    "sk-test-1",
    "Bearer x",
    "--token=abc",
    "--password ",
    "password=",
    '"api_key": "',
    "Authorization: ",
    "[masked:value]",
    "[masked:",
    "://u:p@h",
    "-----BEGIN PRIVATE KEY-----",
    "eyJhbGciOi.eyJzdWIi.c2ln",
    "\\",
    '"',
    "'",
    "\n",
    "=",
    ":",
    " ",
    "-u a:b",
    "cookie: a=b",
  ),
  fc.string({ maxLength: 12 }),
);
const text = fc.array(fragment, { maxLength: 12 }).map((parts) => parts.join(""));

describe("masking, whatever the text", () => {
  it("changes nothing the second time", () => {
    fc.assert(
      fc.property(text, (one) => {
        const once = maskText(one);
        expect(maskText(once)).toBe(once);
      }),
      { numRuns: 2_000 },
    );
  });

  it("lets no secret through that stands by itself between spaces", () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        for (const secret of ["sk-test-1", "--token=abc"]) {
          expect(maskText(`${before} ${secret} ${after}`).split(/\s/)).not.toContain(secret);
        }
      }),
    );
  });

  it("keeps the shape of JSON: keys, lists and what is no text", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const once = maskJson(value);
        expect(maskJson(once)).toEqual(once);
        expect(Array.isArray(once)).toBe(Array.isArray(value));
      }),
    );
  });
});
