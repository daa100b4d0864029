import { describe, expect, it } from "vitest";
import { productFiles } from "./files.ts";

const owners = new Map<string, string[]>();
for (const file of productFiles(".sql").filter((name) => name.startsWith("deploy/migrations/"))) {
  const [, , owner = "", name = ""] = file.split("/");
  owners.set(owner, [...(owners.get(owner) ?? []), name]);
}

// Two branches can each add the next one; git merges them without a word.
describe("migrations", () => {
  it.each([...owners])("of %s are numbered 0001, 0002, … without a hole or a double", (_owner, names) => {
    expect(names.sort().map((name) => name.slice(0, 4))).toEqual(
      names.map((_, index) => String(index + 1).padStart(4, "0")),
    );
  });

  it("are found", () => {
    expect(owners.size).toBeGreaterThan(5);
  });
});
