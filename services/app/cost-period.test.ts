import { expect, it } from "vitest";
import { toReportPeriod } from "./cost-period.ts";

const nowMs = Date.parse("2026-11-30T23:59:59Z");
const days = (text?: string) => {
  const { fromDay, toDay } = toReportPeriod(text, nowMs);
  return [fromDay, toDay];
};

it("reads a month, a day, a span with today, and takes this month without a word", () => {
  expect(days("2026-12")).toEqual(["2026-12-01", "2027-01-01"]);
  expect(days("2024-02-29")).toEqual(["2024-02-29", "2024-03-01"]);
  expect(days("7d")).toEqual(["2026-11-24", "2026-12-01"]);
  expect(days()).toEqual(["2026-11-01", "2026-12-01"]);
});

it.each(["2026-13", "2026-02-30", "0d", "november", "2026"])("refuses %s", (text) => {
  expect(() => toReportPeriod(text, nowMs)).toThrow(/2026-11-30 or 7d/);
});
