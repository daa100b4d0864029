import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { addToTally, emptyTally, toMetrics } from "../../processors/eval/metrics.ts";
import { readExpectedTools, readScoredEpisodes } from "./eval-files.ts";
import { toUntilMs } from "./eval-until.ts";

const scored = "test/corpus/eval/scored.json";

describe("the labelled episodes", () => {
  it("score what was reckoned by hand", async () => {
    const { scores } = JSON.parse(await readFile(scored, "utf8")) as {
      scores: Record<string, number | readonly [number, number]>;
    };
    const metrics = toMetrics((await readScoredEpisodes(scored)).reduce(addToTally, emptyTally));
    const ratio = (name: keyof typeof metrics) => {
      const one = metrics[name];
      return typeof one === "number" ? one : [one.numerator, one.denominator];
    };
    for (const name of Object.keys(metrics) as (keyof typeof metrics)[]) {
      expect(ratio(name), name).toEqual(scores[name]);
    }
    expect(metrics.recovery.value).toBe(2 / 6);
  });

  it("are refused with what is wrong in them", async () => {
    await expect(readExpectedTools(scored)).rejects.toThrow(/scored\.json/);
    await expect(readScoredEpisodes("test/corpus/eval/nothing.json")).rejects.toThrow(/cannot be read/);
  });
});

describe("until", () => {
  const nowMs = Date.UTC(2026, 10, 30, 12);
  it("is a time, the end of a day, or now", () => {
    expect(toUntilMs(undefined, nowMs)).toBe(nowMs);
    expect(toUntilMs("2026-11-30", nowMs)).toBe(Date.UTC(2026, 11, 1) - 1);
    expect(toUntilMs("2026-11-30T12:00:00+01:00", nowMs)).toBe(Date.UTC(2026, 10, 30, 11));
  });
  it.each(["2026-02-30", "yesterday", "2026-11-30T12:00", "2026"])("is not `%s`", (text) => {
    expect(() => toUntilMs(text, nowMs)).toThrow(/is no time/);
  });
});
