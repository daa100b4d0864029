import { describe, expect, it } from "vitest";
import type { Screen } from "../cli/screen.ts";
import { progressLine, toProgressText } from "./replay-progress.ts";

const half = { done: 500_000n, all: 1_000_000n, reasons: [] };

describe("progress of a replay", () => {
  it("is a bar with rate and rest on a terminal", () => {
    expect(toProgressText(half, 25_000, true)).toBe(
      "[███████████████░░░░░░░░░░░░░░░]  50 %  500,000 of 1,000,000 records, 25,000/s, 20 s left",
    );
    expect(toProgressText({ done: 0n, all: 0n, reasons: [] }, 0, false)).toBe("100 %  0 of 0 records");
  });

  it("is a line now and then elsewhere, and one at the end", () => {
    const lines: string[] = [];
    let nowMs = 1_000_000;
    const screen = { progress: (text: string) => lines.push(text) } as unknown as Screen;
    const progress = progressLine(screen, () => nowMs);
    for (let tick = 0; tick <= 100; tick += 1) {
      progress.show({ done: BigInt(tick), all: 100n, reasons: tick === 50 ? ["the broker is away"] : [] });
      nowMs += 200;
    }
    progress.show({ done: 100n, all: 100n, reasons: [] });
    progress.end();
    expect(lines).toHaveLength(3);
    expect(lines[1]).toContain("waits: the broker is away");
    expect(lines[2]).toMatch(/^100 %/);
  });
});
