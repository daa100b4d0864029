import { describe, expect, it } from "vitest";
import { toTable, wrapText } from "./report.ts";

const headers = ["ID", "STATE", "MESSAGE"];
const id = "apr_0190a1b2-0000-7000-8000-000000000001";
const rows = [
  [id, "waits for a person to agree", "somebody has to agree to a deployment before it starts"],
  ["apr_2", "approved", "short"],
];

function widest(text: string): number {
  return Math.max(...text.split("\n").map((line) => line.length));
}

describe("a table", () => {
  it("is as wide as it is where there is no terminal", () => {
    const table = toTable(headers, rows);
    expect(table.split("\n")).toHaveLength(4);
    expect(widest(table)).toBe(40 + 2 + 27 + 2 + 54);
    expect(toTable(headers, rows, 200)).toBe(table);
  });

  it("fits its terminal: the last column is wrapped, other prose is cut, an id never is", () => {
    for (const columns of [120, 100, 90, 82]) {
      const table = toTable(headers, rows, columns);
      expect(widest(table)).toBeLessThanOrEqual(columns);
      expect(table).toContain(id);
      expect(table.replace(/\s+/g, "")).toContain("somebody");
      expect(table.split("\n")[0]).toMatch(/^ID +STATE +MESSAGE$/);
    }
    expect(toTable(headers, rows, 100)).toContain(`\n${" ".repeat(71)}deployment before it starts\n`);
    expect(toTable(headers, rows, 82)).toMatch(/ {2}waits for a\S* .*… {2}somebody/);
  });

  it("becomes a block a row where it cannot fit", () => {
    expect(toTable(headers, rows, 60)).toBe(
      [
        `ID       ${id}`,
        "STATE    waits for a person to agree",
        "MESSAGE  somebody has to agree to a deployment before it",
        "         starts",
        "",
        "ID       apr_2",
        "STATE    approved",
        "MESSAGE  short",
      ].join("\n"),
    );
    const numbers = toTable(["A", "B"], [["1".repeat(30), "2".repeat(30)]], 40);
    expect(numbers).toBe(`A  ${"1".repeat(30)}\nB  ${"2".repeat(30)}`);
  });
});

describe("a line", () => {
  it("is wrapped between words, and indented from the second line on", () => {
    expect(wrapText("rules: deny.one, deny.two, deny.three", 20, "  ")).toBe(
      "rules: deny.one,\n  deny.two,\n  deny.three",
    );
    expect(wrapText("rules: deny.one", undefined, "  ")).toBe("rules: deny.one");
  });
});
