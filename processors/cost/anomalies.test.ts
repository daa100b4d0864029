import { describe, expect, it } from "vitest";
import { judgeWindow } from "./anomalies.ts";

const dollars = (...amounts: number[]): bigint[] => amounts.map((one) => BigInt(one) * 1_000_000n);

describe("a day of spending", () => {
  const usual = dollars(10, 11, 9, 10, 12, 10, 9, 11);

  it("is unusual far above its own scope's median, and names it", () => {
    expect(judgeWindow(usual, 30_000_000n)).toEqual({
      observedMicros: 30_000_000n,
      expectedMicros: 10_000_000n,
    });
    expect(judgeWindow(usual, 16_000_000n)).toBeNull();
  });

  it("is judged by a history that an unusual day does not move", () => {
    expect(judgeWindow([...usual, ...dollars(5_000)], 30_000_000n)).not.toBeNull();
  });

  it("is not unusual without a week of history, below a dollar, or by a little where every day was the same", () => {
    expect(judgeWindow(usual.slice(0, 6), 900_000_000n)).toBeNull();
    expect(judgeWindow([...usual.slice(0, 6), 0n, 0n], 900_000_000n)).toBeNull();
    expect(judgeWindow(Array<bigint>(9).fill(100n), 900_000n)).toBeNull();
    expect(judgeWindow(dollars(...Array<number>(9).fill(10)), 15_000_000n)).toBeNull();
    expect(judgeWindow(dollars(...Array<number>(9).fill(10)), 17_000_000n)).not.toBeNull();
  });
});
