import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toJsonPreview, toStorableText, toTextPreview } from "./masked-preview.ts";

// Joined from parts: a made-up token, and no text that a scanner of this repository would take for a real one.
const token = ["ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].join("_");

describe("previews", () => {
  it("mask before they cut, so that no head of a secret is left at the end", () => {
    for (let at = 200; at < 256; at += 1) {
      const preview = toTextPreview(`${"a ".repeat(at / 2)}${token} tail`, 256);
      expect(preview).not.toContain("ghp_a1");
    }
  });

  it("mask a secret that follows an escaped line break or stands under a telling key", () => {
    expect(toJsonPreview({ command: `A=1\n${token}` }, 512)).not.toContain(token);
    expect(toJsonPreview({ deep: [{ password: "hunter2hunter2" }] }, 512)).not.toContain("hunter2hunter2");
    expect(toJsonPreview({ [token]: 1 }, 512)).not.toContain(token);
  });

  it("show nothing of a secret that the bound on work split", () => {
    const text = `${token} `.repeat(3000);
    expect(toTextPreview(text, 100_000)).not.toContain("ghp_");
    expect(toJsonPreview({ a: text, b: text }, 100_000)).not.toContain("ghp_");
  });

  it("never cut a character in half and never exceed their limit", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat({ max: 40 }), (text, limit) => {
        const preview = toTextPreview(text, limit);
        expect(preview.length).toBeLessThanOrEqual(limit);
        expect(preview).toBe(toStorableText(preview));
      }),
    );
    expect(toTextPreview("ab😀", 3)).toBe("ab");
    expect(toTextPreview("ab😀", 4)).toBe("ab😀");
  });

  it("replace what a database cannot store", () => {
    expect(toStorableText("a\0b\uD800c😀")).toBe("a\uFFFDb\uFFFDc😀");
  });

  it("take any JSON value, however deep, without failing", () => {
    const deep = JSON.parse(`${"[".repeat(5000)}1${"]".repeat(5000)}`) as unknown;
    expect(toJsonPreview(deep, 64).length).toBeLessThanOrEqual(64);
    fc.assert(fc.property(fc.jsonValue(), (value) => toJsonPreview(value, 64).length <= 64));
  });
});
