import { Fault } from "../../schemas/faults.ts";

const dayMs = 86_400_000;

/** The last moment that counts, UTC milliseconds: a time, or the end of a day. Without a text: now. Throws USAGE. */
export function toUntilMs(text: string | undefined, nowMs: number): number {
  if (text === undefined) return nowMs;
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text);
  const isTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/.test(text);
  const ms = isDay || isTime ? Date.parse(text) : NaN;
  if (Number.isNaN(ms) || (isDay && !new Date(ms).toISOString().startsWith(text)))
    throw new Fault("USAGE", `\`${text}\` is no time; give 2026-11-30 or 2026-11-30T12:00:00Z`);
  return isDay ? ms + dayMs - 1 : ms;
}
