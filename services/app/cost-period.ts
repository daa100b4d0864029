import { Fault } from "../../schemas/faults.ts";

/** Days of a report, UTC; the last one excluded. */
export interface Period {
  readonly fromDay: string;
  readonly toDay: string;
  readonly name: string;
}

const dayMs = 86_400_000;
const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** `2026-11`, `2026-11-30`, or `7d`: the last seven days with today. Without a text: this month. Throws USAGE. */
export function toReportPeriod(text: string | undefined, nowMs: number): Period {
  const asked = text ?? toDay(nowMs).slice(0, 7);
  const days = /^([1-9]\d{0,3})d$/.exec(asked);
  if (days !== null) {
    const count = Number(days[1]);
    return {
      fromDay: toDay(nowMs - (count - 1) * dayMs),
      toDay: toDay(nowMs + dayMs),
      name: `last ${asked}`,
    };
  }
  const parts = /^(\d{4})-(\d{2})(?:-(\d{2}))?$/.exec(asked);
  if (parts !== null) {
    const [year, month, day] = [Number(parts[1]), Number(parts[2]), parts[3]];
    const fromMs = Date.UTC(year, month - 1, day === undefined ? 1 : Number(day));
    const toMs = day === undefined ? Date.UTC(year, month, 1) : fromMs + dayMs;
    if (toDay(fromMs).startsWith(asked)) return { fromDay: toDay(fromMs), toDay: toDay(toMs), name: asked };
  }
  throw new Fault("USAGE", `\`${asked}\` is no period; give 2026-11, 2026-11-30 or 7d`);
}
