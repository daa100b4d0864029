import { describe, expect, it } from "vitest";
import { toFullWords, toKnownName } from "./full-words.ts";

const toFull = (program: string, text: string): string =>
  toFullWords(
    program,
    text.split(" ").map((word) => ({ kind: "literal" as const, text: word })),
  )
    .map((word) => (word.kind === "literal" ? word.text : word.source))
    .join(" ");

describe("abbreviated words", () => {
  it.each([
    ["git", "push --del origin x", "push --delete origin x"],
    ["sort", "--outp=/etc/x a", "--output=/etc/x a"],
    ["cp", "--target-dir .. x", "--target-directory .. x"],
    ["npm", "publis", "publish"],
    ["npm", "it x", "install x"],
    ["python3", "-Impip install x", "-m pip install x"],
  ])("of %s: %s means %s", (program, short, full) => {
    expect(toFull(program, short)).toBe(full);
  });

  it.each([
    ["git", "log --no-merges"],
    ["git", "checkout -- --del"],
    ["npm", "run publis"],
    ["npm", "t"],
    ["curl", "--silent --location"],
    ["python3", "a.py -mpip"],
    ["frob", "--del"],
  ])("of %s stay as they are: %s", (program, text) => {
    expect(toFull(program, text)).toBe(text);
  });

  it("knows a program with its version by its name", () => {
    expect(["python3.12", "pip3.11", "gcc-13", "cat2"].map(toKnownName)).toEqual([
      "python",
      "pip",
      "gcc",
      "cat2",
    ]);
  });
});
