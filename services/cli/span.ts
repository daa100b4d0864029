import { Fault } from "../../schemas/faults.ts";

const unitsMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A span such as `30s` or `3d` in milliseconds. Throws USAGE. */
export function toSpanMs(text: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const unitMs = unitsMs[match?.[2] ?? ""];
  if (match === null || unitMs === undefined)
    throw new Fault("USAGE", `\`${text}\` is no span; write 30s, 15m, 2h or 3d`);
  return Number(match[1]) * unitMs;
}
