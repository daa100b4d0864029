import type { Adapter } from "../../schemas/adapter.ts";

/** What an adapter makes of a payload, as plain JSON, or what it throws. */
export type PlainTranslation = Readonly<Record<string, unknown>>;

/** One place in which two versions differ: a JSON pointer, and both sides as JSON text; absent where there is nothing. */
export interface PlaceDifference {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** The body of a hook through an adapter; what it says of its own version is left out. */
export function translatePlainly(adapter: Adapter, body: string): PlainTranslation {
  let payload: unknown;
  try {
    payload = JSON.parse(body);
  } catch {
    return { unreadable: "not JSON" };
  }
  try {
    const translation = adapter.translate(payload, Buffer.byteLength(body));
    return toPlain({
      ...translation,
      runtime: { ...translation.runtime, adapter_version: null },
    }) as PlainTranslation;
  } catch (error) {
    return { thrown: error instanceof Error ? error.message : String(error) };
  }
}

/** Where two translations of one payload differ; none: they are equal. */
export function compareTranslations(
  before: PlainTranslation,
  after: PlainTranslation,
): readonly PlaceDifference[] {
  const found: PlaceDifference[] = [];
  walk(before, after, "");
  return found;

  function walk(a: unknown, b: unknown, path: string): void {
    if (isBranch(a) && isBranch(b) && Array.isArray(a) === Array.isArray(b)) {
      const left = a as Record<string, unknown>;
      const right = b as Record<string, unknown>;
      for (const name of new Set([...Object.keys(left), ...Object.keys(right)]))
        walk(left[name], right[name], `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
      return;
    }
    const before = toText(a);
    const after = toText(b);
    if (before !== after) found.push({ path, before, after });
  }
}

function toPlain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return value.map(toPlain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => (one === undefined ? [] : [[name, toPlain(one)]])),
  );
}

function isBranch(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function toText(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}
