import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BookedMonth, MonthStatement } from "./month-statement.ts";
import { findOpenBefore, toStatement } from "./month-statement.ts";

const month = (period: string, amount: bigint, calls = 1n): BookedMonth => ({
  period,
  amount_micros: amount,
  calls,
  unpriced_calls: 0n,
});

describe("a statement", () => {
  it("carries what came late for closed months once, and what was taken back", () => {
    const january = toStatement("2026-01", [month("2026-01", 10n)], []);
    expect(january).toMatchObject({ amount_micros: 10n, carried_micros: 0n, calls: 1n });
    const late = [month("2026-01", 13n), month("2026-02", 5n), month("2026-03", 7n)];
    const february = toStatement("2026-02", late, [january]);
    expect(february).toMatchObject({ amount_micros: 5n, carried_micros: 3n });
    expect(toStatement("2026-03", late, [january, february])).toMatchObject({
      amount_micros: 7n,
      carried_micros: 0n,
    });
    const back = [month("2026-01", 12n), ...late.slice(1)];
    expect(toStatement("2026-03", back, [january, february]).carried_micros).toBe(-1n);
  });

  it("makes all statements together what the ledger has, whatever came late", () => {
    const periods = ["2026-01", "2026-02", "2026-03", "2026-04"];
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.bigInt({ min: -50n, max: 50n }), { minLength: 4, maxLength: 4 }), {
          minLength: 4,
          maxLength: 4,
        }),
        (amounts) => {
          const stated: MonthStatement[] = [];
          periods.forEach((period, index) => {
            const booked = periods
              .slice(0, index + 1)
              .map((one, place) => month(one, amounts[index]?.[place] ?? 0n));
            stated.push(toStatement(period, booked, stated));
            const due = stated.reduce((sum, one) => sum + one.amount_micros + one.carried_micros, 0n);
            expect(due).toBe(booked.reduce((sum, one) => sum + one.amount_micros, 0n));
          });
        },
      ),
    );
  });
});

describe("the order of closing", () => {
  it("names the oldest month that is open still, and none for a month in which nothing was booked", () => {
    const booked = [month("2026-01", 1n), month("2026-03", 1n), month("2026-04", 1n)];
    expect(findOpenBefore("2026-04", booked, [])).toBe("2026-01");
    const january = toStatement("2026-01", booked, []);
    expect(findOpenBefore("2026-04", booked, [january])).toBe("2026-03");
    expect(findOpenBefore("2026-03", booked, [january])).toBeNull();
  });
});
