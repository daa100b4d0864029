import { z } from "zod";

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
/** Longer is no duration but a mistake, and a month of counters is the longest that is kept. */
const maxMs = 366 * 86_400_000;

/** `500ms`, `30s`, `15m`, `2h`, `1d`, as milliseconds. */
export const durationMs = z.string().transform((text, context): number => {
  const [, digits = "", unit = ""] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(digits) * (unitMs[unit] ?? 0);
  if (ms > 0 && ms <= maxMs) return ms;
  context.addIssue({
    code: "custom",
    message: "a duration has the form `500ms`, `30s`, `15m`, `2h` or `1d`",
  });
  return z.NEVER;
});
