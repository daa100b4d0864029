import { describe, expect, it } from "vitest";
import { Backoff } from "../platform/backoff.ts";
import { HeldTopics } from "./held-topics.ts";

describe("held topics", () => {
  it("holds a topic longer each time, up to a quarter of a minute, and short again once it took a record", () => {
    const held = new HeldTopics(() => 1);
    const spans: number[] = [];
    for (let nowMs = 0, round = 0; round < 10; round += 1) {
      held.hold("a", nowMs);
      expect(held.types).toEqual(["a"]);
      const from = nowMs;
      while (!held.expire(nowMs)) nowMs += 10;
      spans.push(nowMs - from);
      expect(held.types).toEqual([]);
    }
    expect(spans.slice(0, 3)).toEqual([200, 400, 800]);
    expect(spans.at(-1)).toBe(15_000);
    held.clear("a");
    held.hold("a", 0);
    expect(held.expire(200)).toBe(true);
  });

  it("says only once that a hold is over, and keeps the others", () => {
    const held = new HeldTopics(() => 1);
    held.hold("a", 0);
    held.hold("b", 100);
    expect(held.expire(200)).toBe(true);
    expect(held.types).toEqual(["b"]);
    expect(held.expire(200)).toBe(false);
    expect(held.remembered).toEqual(["a", "b"]);
  });
});

describe("backoff", () => {
  it("doubles up to its longest time, leaves half to chance, and starts anew after a success", () => {
    const lowest = new Backoff({ firstMs: 100, longestMs: 1_000, random: () => 0 });
    expect([1, 2, 3, 4, 5, 6].map(() => lowest.nextMs())).toEqual([50, 100, 200, 400, 500, 500]);
    lowest.reset();
    expect(lowest.nextMs()).toBe(50);
    const highest = new Backoff({ firstMs: 100, longestMs: 1_000, random: () => 1 });
    for (let i = 0; i < 2_000; i += 1) expect(highest.nextMs()).toBeLessThanOrEqual(1_000);
  });
});
