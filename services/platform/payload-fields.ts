import { z } from "zod";
import type { UnrecognizedProblem } from "../../schemas/generated/types.ts";
import { toTextPreview } from "./masked-preview.ts";

/** Longest identifier that is an index key everywhere. */
const identifierMaxChars = 256;
/** A payload names at most so many strange fields; the rest is counted. */
const listedFieldsMax = 64;
const pointerMaxChars = 128;
/** Deeper than any tool's input, far below where recursive code fails. */
const actionMaxDepth = 64;

/** Neither NUL nor lone surrogates: what PostgreSQL and UTF-8 carry unchanged. */
const storable = /^[^\0\p{Surrogate}]*$/u;

/** An id of the runtime: not empty, storable as it is. */
export const identifierField = z.string().min(1).max(identifierMaxChars).regex(storable);
/** A tool's name as the runtime spells it. */
export const toolNameField = z.string().min(1).max(200).regex(storable);
/** Where an action happens. */
export const workingDirectoryField = z.string().min(1).max(4096);

/** True for what `JSON.parse` makes of `{…}`. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Walks without recursion: false below `maxDepth`, at a `__proto__` key, and at a number that JSON cannot write. */
function isPlainWithin(value: unknown, maxDepth: number): boolean {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (typeof one.value === "number" && !Number.isFinite(one.value)) return false;
    if (typeof one.value !== "object" || one.value === null) continue;
    if (one.depth >= maxDepth || Object.hasOwn(one.value, "__proto__")) return false;
    for (const item of Object.values(one.value) as unknown[])
      open.push({ value: item, depth: one.depth + 1 });
  }
  return true;
}

const notAnObject = "not an object";

/**
 * A tool's input, handed on unchanged. Refused when later stages could not see all of it: nested too deep, with a
 * `__proto__` key, which copies lose, or with an infinite number.
 */
export const actionInputField = z
  .custom<Readonly<Record<string, unknown>>>(isJsonObject, { error: notAnObject, abort: true })
  .refine((value) => isPlainWithin(value, actionMaxDepth), {
    error: "nested too deep, or with a __proto__ key",
  });

/** JSON pointer of a top-level field, masked and short: a stranger chose the name. */
export const toPointer = (key: string): string =>
  `/${toTextPreview(key.replaceAll("~", "~0").replaceAll("/", "~1"), pointerMaxChars)}`;

/** What an event's payload holds: what the translation needs, what it likes to have, what it leaves. */
export interface FieldRules<B extends z.ZodRawShape, M extends z.ZodRawShape> {
  /** Bear the action or the fact: one that is not understood makes the payload unrecognized. */
  readonly bearing: B;
  /** Mere metadata: one that is not understood counts as absent and is reported. */
  readonly metadata: M;
  /** Known, and of no use for any event. */
  readonly dropped: readonly string[];
}

/**
 * What all payloads of one runtime have in common; makes the builder of each event's rules. An event may know more of a field
 * than its runtime does. `within` is the container that an event's dropped fields lie in, where all of them do.
 */
export const toFieldRules =
  <I extends z.ZodRawShape, S extends z.ZodRawShape>(
    identity: I,
    surroundings: S,
    everywhere: readonly string[],
    within = "",
  ) =>
  <B extends z.ZodRawShape, M extends z.ZodRawShape>(
    bearing: B,
    metadata: M,
    dropped: readonly string[] = [],
  ): FieldRules<Omit<I, keyof B> & B, S & M> => ({
    bearing: { ...identity, ...bearing },
    metadata: { ...surroundings, ...metadata },
    dropped: [...everywhere, ...dropped.map((name) => `${within}${name}`)],
  });

export interface ReadFields<B extends z.ZodRawShape, M extends z.ZodRawShape> {
  readonly ok: true;
  readonly bearing: z.output<z.ZodObject<B>>;
  readonly metadata: { readonly [K in keyof M]?: z.output<M[K]> };
  readonly dropped: readonly string[];
  readonly unknownFields: readonly string[];
}
export interface UnreadableField {
  readonly ok: false;
  readonly problem: UnrecognizedProblem;
  /** JSON pointer. */
  readonly field: string;
}

/** Why one value does not fit: absent, of another type, or of the type with an unknown value. */
const toProblem = (value: unknown, issue: z.core.$ZodIssue | undefined): UnrecognizedProblem => {
  if (value === undefined) return "missing_field";
  return issue?.code === "invalid_type" || issue?.message === notAnObject ? "wrong_type" : "unknown_value";
};

/**
 * Reads a payload by its rules. Every field ends up in exactly one place: read, dropped by name, or reported as
 * unknown. Never throws.
 */
export function readFields<B extends z.ZodRawShape, M extends z.ZodRawShape>(
  payload: Readonly<Record<string, unknown>>,
  rules: FieldRules<B, M>,
): ReadFields<B, M> | UnreadableField {
  const own = (key: string): unknown => (Object.hasOwn(payload, key) ? payload[key] : undefined);
  const bearing: Record<string, unknown> = {};
  for (const [key, schema] of Object.entries(rules.bearing) as [string, z.ZodType][]) {
    const value = own(key);
    const parsed = schema.safeParse(value);
    if (!parsed.success)
      return { ok: false, problem: toProblem(value, parsed.error.issues[0]), field: toPointer(key) };
    if (parsed.data !== undefined) bearing[key] = parsed.data;
  }
  const metadata: Record<string, unknown> = {};
  const dropped: string[] = [];
  const unknown: string[] = [];
  for (const key of Object.keys(payload)) {
    if (Object.hasOwn(rules.bearing, key)) continue;
    if (Object.hasOwn(rules.metadata, key)) {
      const parsed = (rules.metadata[key] as z.ZodType).safeParse(payload[key]);
      if (parsed.success) metadata[key] = parsed.data;
      else unknown.push(key);
    } else if (rules.dropped.includes(key)) dropped.push(toPointer(key));
    else unknown.push(key);
  }
  return {
    ok: true,
    bearing: bearing as z.output<z.ZodObject<B>>,
    metadata: metadata as ReadFields<B, M>["metadata"],
    dropped,
    unknownFields: toListed(unknown, ""),
  };
}

/** The fields inside a container of which a part is read. `*` in a pointer stands for each item of an array. */
export function sortNested(
  pointer: string,
  value: unknown,
  read: readonly string[],
  known: readonly string[],
): { readonly dropped: readonly string[]; readonly unknownFields: readonly string[] } {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  const keys = new Set(items.flatMap((item) => (isJsonObject(item) ? Object.keys(item) : [])));
  const left = [...keys].filter((key) => !read.includes(key));
  const under = Array.isArray(value) ? `${pointer}/*` : pointer;
  const toNames = (names: readonly string[]): readonly string[] =>
    names.map((key) => `${under}${toPointer(key)}`);
  return {
    dropped: toNames(left.filter((key) => known.includes(key))),
    unknownFields: toNames(left.filter((key) => !known.includes(key))),
  };
}

/** At most 64 pointers; a last entry counts the others. */
function toListed(keys: readonly string[], under: string): readonly string[] {
  if (keys.length <= listedFieldsMax) return keys.map((key) => under + toPointer(key));
  const listed = keys.slice(0, listedFieldsMax - 1).map((key) => under + toPointer(key));
  return [...listed, `${under}/* (${String(keys.length - listed.length)} more)`];
}
