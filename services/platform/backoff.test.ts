import { describe, expect, it } from "vitest";
import { backoffMs } from "./backoff.ts";

describe("backoffMs", () => {
  it("doubles up to its ceiling and never falls below half of it", () => {
    const limits = { minMs: 100, maxMs: 1_000 };
    expect([1, 2, 3, 4, 5, 50].map((attempt) => backoffMs(attempt, 1, limits))).toEqual([
      100, 200, 400, 800, 1_000, 1_000,
    ]);
    expect(backoffMs(3, 0, limits)).toBe(200);
  });
});
