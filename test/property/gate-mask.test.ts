import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { detect, detectors, maskJson, maskText, suspicionsOf } from "../../services/platform/mask.ts";

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

/** A text that each detector likes, with its letters in any case. */
const triggered = fc
  .tuple(
    text,
    fc.constantFrom(...detectors.flatMap(({ triggers }) => triggers)),
    fc.constantFrom(
      "",
      "a",
      "_",
      "-",
      "=",
      " ",
      ": ",
      "y",
      " Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z",
      "\u212A",
      "\u017F",
      "\u0130",
    ),
    fc.stringMatching(/^[A-Za-z0-9_.-]{0,40}$/),
    fc.boolean(),
  )
  .map(([before, trigger, between, after, isUpper]) => {
    const shown = isUpper ? trigger.toUpperCase() : trigger;
    return `${before}${shown}${between}${after}`;
  });

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

  it("finds nothing where the cheap pass saw no trigger", () => {
    fc.assert(
      fc.property(fc.oneof(text, triggered), (one) => {
        const suspected = suspicionsOf(one);
        detectors.forEach((detector, index) => {
          if ((suspected & (1 << index)) === 0) expect(detect(one, detector)).toBe(one);
        });
      }),
      { numRuns: 5_000 },
    );
  });

  it("knows a trigger for each detector, in whatever case", () => {
    expect(detectors.length).toBeLessThan(32);
    detectors.forEach(({ triggers }, index) => {
      for (const trigger of triggers) {
        for (const form of [trigger, trigger.toUpperCase()]) {
          expect(suspicionsOf(`before${form}after`) & (1 << index)).not.toBe(0);
        }
      }
    });
  });
});
