import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLike, matches } from "./matchers.ts";

describe("a pattern with stars", () => {
  it("fits what the same regular expression fits", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 12 });
    const pattern = fc.string({ unit: fc.constantFrom("a", "b", ".", "*"), maxLength: 8 });
    fc.assert(
      fc.property(letters, pattern, (text, stars) => {
        const expression = stars
          .split("*")
          .map((part) => part.replaceAll(".", "\\."))
          .join("[^]*");
        expect(isLike(text, stars)).toBe(new RegExp(`^${expression}$`).test(text));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("a condition", () => {
  const input = { command: "git push", argv: ["git", "push"], n: 3, deep: { list: [{ x: null }] }, "a/b": 1 };
  it.each([
    ["/command", { equals: "git push" }, true],
    ["/command", { contains: "pull" }, false],
    ["/command", { startsWith: "git" }, true],
    ["/command", { endsWith: "push" }, true],
    ["/argv", { contains: "git push" }, true],
    ["/n", { above: 2 }, true],
    ["/n", { below: 3 }, false],
    ["/n", { oneOf: [1, 3] }, true],
    ["/deep/list/0", { equals: { x: null } }, true],
    ["/deep/list/1", { present: false }, true],
    ["/a~1b", { equals: 1 }, true],
    ["/constructor", { present: true }, false],
    ["/n", { contains: "3" }, false],
  ])("%s %j is %s", (field, is, expected) => {
    expect(matches({ where: [{ field, is }] }, "any.tool", input)).toBe(expected);
  });
});
