import type { EventType } from "../../schemas/catalog.ts";
import { eventTypes } from "../../schemas/catalog.ts";

const shown = 3;

/** The event types whose names are written most like `name`, the nearest first. */
export function nearestTypes(name: string): readonly EventType[] {
  return [...eventTypes]
    .map((type) => ({ type, distance: toDistance(name, type) }))
    .sort((one, other) => one.distance - other.distance)
    .slice(0, shown)
    .map(({ type }) => type);
}

/** Letters to add, drop or change (Levenshtein). */
function toDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
