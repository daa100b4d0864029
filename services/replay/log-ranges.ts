import { Fault } from "../../schemas/faults.ts";
import type { LogLookupPort } from "../platform/kafka-offsets.ts";
import type { LogRange } from "./shadow.ts";

/** One end of a range, as a person writes it. */
export type LogPoint =
  | { readonly kind: "earliest" }
  | { readonly kind: "latest" }
  | { readonly kind: "offset"; readonly offset: bigint }
  | { readonly kind: "offsets"; readonly offsets: ReadonlyMap<string, bigint> }
  | { readonly kind: "time"; readonly timeMs: number };

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A span such as `6h` in milliseconds; null when it is none. */
export function toSpanMs(text: string): number | null {
  const match = /^([1-9]\d{0,6})([smhd])$/.exec(text);
  return match === null ? null : Number(match[1]) * unitMs[match[2] as keyof typeof unitMs];
}

/**
 * `earliest`, `latest`, an offset (of every partition), `topic/partition@offset` separated by commas, a time, or a span
 * before now such as `6h`. Throws USAGE.
 */
export function toLogPoint(text: string, nowMs: number): LogPoint {
  if (text === "earliest" || text === "latest") return { kind: text };
  if (/^\d{1,18}$/.test(text)) return { kind: "offset", offset: BigInt(text) };
  if (text.includes("@")) {
    const offsets = new Map<string, bigint>();
    for (const part of text.split(",")) {
      const match = /^\s*([^/@\s]+\/\d+)@(\d{1,18})\s*$/.exec(part);
      if (match === null) throw new Fault("USAGE", `\`${part}\` is not topic/partition@offset`);
      offsets.set(match[1] ?? "", BigInt(match[2] ?? "0"));
    }
    return { kind: "offsets", offsets };
  }
  const spanMs = toSpanMs(text);
  if (spanMs !== null) return { kind: "time", timeMs: nowMs - spanMs };
  const timeMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs))
    throw new Fault(
      "USAGE",
      `\`${text}\` is no place in the log: earliest, latest, an offset, topic/partition@offset, a time such as 2026-11-30T10:00Z, or a span such as 6h`,
    );
  return { kind: "time", timeMs };
}

/**
 * The offsets between two points, for every partition of the topics that exist. Throws GAP_FOUND for offsets that the log
 * no longer holds, and USAGE for ranges that go backwards or topics of which none exists.
 */
export async function resolveRanges(
  log: LogLookupPort,
  topics: readonly { readonly topic: string; readonly type: string }[],
  from: LogPoint,
  to: LogPoint,
): Promise<readonly LogRange[]> {
  const existing = await log.existing(topics.map(({ topic }) => topic));
  const ranges: LogRange[] = [];
  for (const one of topics) {
    if (!existing.has(one.topic)) continue;
    const ends = await log.ends(one.topic);
    const fromTimes = from.kind === "time" ? await log.at(one.topic, from.timeMs) : null;
    const toTimes = to.kind === "time" ? await log.at(one.topic, to.timeMs) : null;
    for (const { partition, earliest, latest } of ends) {
      const begin = placeOf(from, one, partition, { earliest, latest, otherwise: earliest }, fromTimes);
      const end = placeOf(to, one, partition, { earliest, latest, otherwise: latest }, toTimes);
      if (begin < earliest)
        throw new Fault(
          "GAP_FOUND",
          `${one.topic}/${String(partition)} begins at ${String(earliest)} and no longer holds ${String(begin)}`,
        );
      if (end > latest)
        throw new Fault(
          "USAGE",
          `${one.topic}/${String(partition)} ends at ${String(latest)}, before ${String(end)}`,
        );
      ranges.push({ topic: one.topic, partition, from: begin < end ? begin : end, to: end });
    }
  }
  if (ranges.length === 0)
    throw new Fault("USAGE", "none of the processor's topics exists; `fabric topics apply` makes them");
  return ranges;
}

function placeOf(
  point: LogPoint,
  { topic, type }: { readonly topic: string; readonly type: string },
  partition: number,
  ends: { readonly earliest: bigint; readonly latest: bigint; readonly otherwise: bigint },
  times: ReadonlyMap<number, bigint> | null,
): bigint {
  switch (point.kind) {
    case "earliest":
      return ends.earliest;
    case "latest":
      return ends.latest;
    case "offset":
      // One number for many partitions: those that are shorter end where they end.
      return point.offset > ends.latest ? ends.latest : point.offset;
    case "offsets":
      return (
        point.offsets.get(`${topic}/${String(partition)}`) ??
        point.offsets.get(`${type}/${String(partition)}`) ??
        ends.otherwise
      );
    case "time": {
      const offset = times?.get(partition);
      return offset === undefined || offset < 0n ? ends.latest : offset;
    }
  }
}
