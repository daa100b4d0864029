import { describe, expect, it } from "vitest";
import { lagOf, newPartition } from "./partition.ts";

const position = { topic: "t", partition: 0, nextOffset: 10n, epoch: 1n, topicId: null, stoppedCause: null };

describe("lagOf", () => {
  it("is zero in both when nothing is left to read, however old the last record", () => {
    expect(lagOf({ ...newPartition(position, 1, 10n, 0), lastRecordMs: 0 }, 99_000)).toEqual({
      records: 0,
      seconds: 0,
    });
  });
  it("counts records to the end of the log, and seconds since the last one that was read", () => {
    const partition = { ...newPartition(position, 1, 25n, 0), lastRecordMs: 40_000 };
    expect(lagOf(partition, 100_000)).toEqual({ records: 15, seconds: 60 });
  });
  it("counts seconds since the assignment before anything was read", () => {
    expect(lagOf(newPartition(position, 1, 11n, 70_000), 100_000)).toEqual({ records: 1, seconds: 30 });
  });
});
