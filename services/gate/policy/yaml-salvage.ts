import type { z } from "zod";

/** What fits a schema after the entries that do not are left out. */
export interface Salvaged<T> {
  readonly value: T;
  /** The place that an entry of a list has in the file, from its place in `value`. */
  readonly placeOf: (key: PropertyKey, index: number) => number;
}

/** Leaves out each entry of a list, and each key, that the schema refuses; null when even the rest does not fit. */
export function salvage<T>(
  raw: unknown,
  issues: readonly z.core.$ZodIssue[],
  schema: z.ZodType<T>,
): Salvaged<T> | null {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return null;
  const whole = new Map<PropertyKey, Set<number>>();
  const rest = new Map<string, unknown>(Object.entries(raw));
  for (const { code, path, ...issue } of issues) {
    const [key, index] = path;
    if (key === undefined) {
      if (code !== "unrecognized_keys") return null;
      for (const unknown of (issue as { readonly keys: readonly string[] }).keys) rest.delete(unknown);
    } else if (typeof index === "number") whole.set(key, (whole.get(key) ?? new Set()).add(index));
    else rest.delete(String(key));
  }
  const places = new Map<PropertyKey, readonly number[]>();
  for (const [key, wrong] of whole) {
    const list = rest.get(String(key));
    if (!Array.isArray(list)) continue;
    const kept = [...list.keys()].filter((index) => !wrong.has(index));
    places.set(key, kept);
    rest.set(
      String(key),
      kept.map((index) => list[index] as unknown),
    );
  }
  const parsed = schema.safeParse(Object.fromEntries(rest));
  if (!parsed.success) return null;
  return { value: parsed.data, placeOf: (key, index) => places.get(key)?.[index] ?? index };
}
