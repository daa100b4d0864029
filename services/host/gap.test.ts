import { describe, expect, it } from "vitest";
import { findGap } from "./gap.ts";

describe("findGap", () => {
  it("finds none while every record from the position on is there", () => {
    expect(findGap(5n, { earliest: 0n, latest: 9n })).toBeNull();
    expect(findGap(5n, { earliest: 5n, latest: 5n })).toBeNull();
    expect(findGap(0n, { earliest: 0n, latest: 0n })).toBeNull();
  });
  it("takes a topic that was made anew for a gap, also when its log is longer than the position", () => {
    const ends = { earliest: 0n, latest: 9n };
    expect(findGap(5n, { ...ends, topicId: "b" }, "a")).toEqual({
      cause: "topic_recreated",
      expectedOffset: 5n,
      foundOffset: 0n,
    });
    expect(findGap(5n, { ...ends, topicId: "a" }, "a")).toBeNull();
    expect(findGap(5n, { ...ends, topicId: null }, "a")).toBeNull();
    expect(findGap(5n, { ...ends, topicId: "b" }, null)).toBeNull();
  });
  it("tells records that retention took from a log that ends too early", () => {
    expect(findGap(5n, { earliest: 6n, latest: 9n })).toEqual({
      cause: "retention",
      expectedOffset: 5n,
      foundOffset: 6n,
    });
    expect(findGap(5n, { earliest: 0n, latest: 4n })).toEqual({
      cause: "log_end_below_position",
      expectedOffset: 5n,
      foundOffset: 4n,
    });
  });
});
