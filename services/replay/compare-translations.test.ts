import { describe, expect, it } from "vitest";
import { compareTranslations } from "./compare-translations.ts";

describe("compareTranslations", () => {
  it("names each place that differs, with both sides, and nothing else", () => {
    const before = { kind: "gated", request: { tool: "shell.run", input: { a: 1, b: [1, 2] } } };
    const after = {
      kind: "gated",
      request: { tool: "shell.exec", input: { a: 1, b: [1, 2, 3] }, more: null },
    };
    expect(compareTranslations(before, after)).toEqual([
      { path: "/request/tool", before: '"shell.run"', after: '"shell.exec"' },
      { path: "/request/input/b/2", before: null, after: "3" },
      { path: "/request/more", before: null, after: "null" },
    ]);
    expect(compareTranslations(before, structuredClone(before))).toEqual([]);
  });

  it("tells a list from an object with the same members", () => {
    expect(compareTranslations({ a: ["x"] }, { a: { 0: "x" } })).toHaveLength(1);
  });
});
