import { describe, expect, it } from "vitest";
import { FanOutGuard } from "./fan-out-guard.ts";

describe("FanOutGuard", () => {
  it("admits up to the limit in a window, counts what was committed only, and admits again later", () => {
    const guard = new FanOutGuard({ maxEmissions: 10, windowMs: 60_000 });
    expect(guard.admits(10, 0)).toBe(true);
    expect(guard.admits(11, 0)).toBe(false);
    guard.record(8, 0);
    expect(guard.admits(2, 1_000)).toBe(true);
    expect(guard.admits(3, 1_000)).toBe(false);
    expect(guard.admits(3, 31_000)).toBe(false);
    expect(guard.admits(3, 61_000)).toBe(true);
    expect(guard.admits(10, 600_000)).toBe(true);
  });
});
