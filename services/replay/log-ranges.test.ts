import { describe, expect, it } from "vitest";
import type { LogLookupPort } from "../platform/kafka-offsets.ts";
import { resolveRanges, toLogPoint } from "./log-ranges.ts";

const nowMs = Date.parse("2026-11-30T12:00:00Z");

/** Two partitions: 10 to 100, and 0 to 50; record n of each was written at second n. */
const log: LogLookupPort = {
  existing: (topics) =>
    Promise.resolve(
      new Map(topics.filter((topic) => topic === "p.t").map((topic) => [topic, null] as const)),
    ),
  ends: () =>
    Promise.resolve([
      { partition: 0, earliest: 10n, latest: 100n },
      { partition: 1, earliest: 0n, latest: 50n },
    ]),
  at: (_topic, timestampMs) => {
    const second = BigInt(Math.ceil(timestampMs / 1_000));
    return Promise.resolve(new Map([0, 1].map((n) => [n, second > [100n, 50n][n]! ? -1n : second] as const)));
  },
  deleteGroups: () => Promise.resolve([]),
  close: () => Promise.resolve(),
};
const topics = [
  { topic: "p.t", type: "t" },
  { topic: "p.gone", type: "gone" },
];
const resolve = async (from: string, to: string) =>
  (await resolveRanges(log, topics, toLogPoint(from, nowMs), toLogPoint(to, nowMs))).map((one) => [
    one.partition,
    Number(one.from),
    Number(one.to),
  ]);

describe("resolveRanges", () => {
  it("reads all that the log holds by default", async () => {
    expect(await resolve("earliest", "latest")).toEqual([
      [0, 10, 100],
      [1, 0, 50],
    ]);
  });

  it("takes one offset for every partition, or one for each, by topic or by type", async () => {
    expect(await resolve("20", "60")).toEqual([
      [0, 20, 60],
      [1, 20, 50],
    ]);
    expect(await resolve("p.t/0@30,t/1@5", "latest")).toEqual([
      [0, 30, 100],
      [1, 5, 50],
    ]);
  });

  it("takes times, and ends where no record is as late", async () => {
    expect(await resolve("1970-01-01T00:00:20Z", "1970-01-01T00:01:10Z")).toEqual([
      [0, 20, 70],
      [1, 20, 50],
    ]);
    expect(toLogPoint("6h", nowMs)).toEqual({ kind: "time", timeMs: nowMs - 6 * 3_600_000 });
  });

  it("refuses what is gone, what is not there yet, and what is no place", async () => {
    await expect(resolve("5", "latest")).rejects.toMatchObject({ code: "GAP_FOUND" });
    await expect(resolve("earliest", "t/0@101")).rejects.toMatchObject({ code: "USAGE" });
    for (const text of ["yesterday", "6 h", "-1", "t/0@", "2026-13-45"])
      expect(() => toLogPoint(text, nowMs), text).toThrow(/no place|topic\/partition/);
  });
});
