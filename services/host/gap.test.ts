import { describe, expect, it } from "vitest";
import { findGap } from "./gap.ts";

describe("findGap", () => {
  it("finds none while every record from the position on is there", () => {
    expect(findGap(5n, { earliest: 0n, latest: 9n })).toBeNull();
    expect(findGap(5n, { earliest: 5n, latest: 5n })).toBeNull();
    expect(findGap(0n, { earliest: 0n, latest: 0n })).toBeNull();
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
