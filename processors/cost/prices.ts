import { z } from "zod";
import type { EpochMs } from "../../schemas/generated/types.ts";
import type { YamlList } from "../kit/yaml-list.ts";
import { parseYamlList } from "../kit/yaml-list.ts";

/** When a price applies, and to what. Times are UTC milliseconds; `validToMs` is the first moment after it. */
export interface Listed {
  /** An exact name, or a beginning with `*` behind it. */
  readonly pattern: string;
  readonly validFromMs: EpochMs;
  readonly validToMs: EpochMs | null;
  /** A call that was recorded before this is not priced by it: see `findPrice`. */
  readonly listedAtMs: EpochMs;
  readonly source: string;
}

/** Rates of a model: millionths of the currency per million tokens. */
export interface ModelPrice extends Listed {
  readonly inputMicros: bigint;
  readonly cachedInputMicros: bigint;
  readonly cacheWriteMicros: bigint;
  readonly outputMicros: bigint;
}

/** Rates of a tool: millionths of the currency per call, per second of wall time, per MiB of its result. */
export interface ToolPrice extends Listed {
  readonly callMicros: bigint;
  readonly wallSecondMicros: bigint;
  readonly outputMebibyteMicros: bigint;
}

/** Everything that is priced. */
export interface PriceList {
  readonly models: readonly ModelPrice[];
  readonly tools: readonly ToolPrice[];
}

/** What came of the files of a price list. */
export type PriceListOutcome =
  | { readonly ok: true; readonly prices: PriceList }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Highest rate: with the most tokens that one call may have, an amount still fits the database's 64 bits. */
const maxRateMicros = 1_000_000_000_000;
const rate = z.number().int("a rate is a whole number of millionths").min(0).max(maxRateMicros);
const date = z
  .string()
  .refine(
    (text) => /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?$/.test(text) && !Number.isNaN(Date.parse(text)),
    "a date has the form 2026-11-30, or 2026-11-30T12:00:00Z; it is UTC",
  );
const validity = {
  valid_from: date,
  valid_to: date.optional(),
  listed_at: date.optional(),
  source: z.string().min(1, "say where the price comes from"),
};
const pattern = z
  .string()
  .regex(/^[^*\s]*\*?$/, "a name is exact, or ends with one `*`")
  .min(1);
const fileSchema = z.strictObject({
  currency: z.literal("USD"),
  note: z.string().optional(),
  models: z
    .array(
      z.strictObject({
        model: pattern,
        ...validity,
        input_micros_per_million: rate,
        cached_input_micros_per_million: rate.optional(),
        cache_write_micros_per_million: rate.optional(),
        output_micros_per_million: rate,
      }),
    )
    .default([]),
  tools: z
    .array(
      z.strictObject({
        tool: pattern,
        ...validity,
        call_micros: rate.default(0),
        wall_second_micros: rate.default(0),
        output_mebibyte_micros: rate.default(0),
      }),
    )
    .default([]),
});
type PriceFile = z.output<typeof fileSchema>;

/** Reads a price list out of its files. Two prices of one name that are valid at the same time are refused. */
export function parsePrices(
  files: readonly { readonly file: string; readonly text: string }[],
): PriceListOutcome {
  const problems: string[] = [];
  const models: (ModelPrice & { at: string })[] = [];
  const tools: (ToolPrice & { at: string })[] = [];
  for (const { file, text } of files) {
    const parsed = parseYamlList<PriceFile>(file, text, fileSchema);
    if (parsed.ok) {
      models.push(...toModels(parsed.list));
      tools.push(...toTools(parsed.list));
    } else problems.push(...parsed.problems);
  }
  problems.push(...findClashes(models), ...findClashes(tools));
  return problems.length > 0 ? { ok: false, problems } : { ok: true, prices: { models, tools } };
}

function toModels({ value, at }: YamlList<PriceFile>): (ModelPrice & { at: string })[] {
  return value.models.map((one, index) => ({
    ...toListed(one.model, one),
    at: at(["models", index]),
    inputMicros: BigInt(one.input_micros_per_million),
    cachedInputMicros: BigInt(one.cached_input_micros_per_million ?? one.input_micros_per_million),
    cacheWriteMicros: BigInt(one.cache_write_micros_per_million ?? one.input_micros_per_million),
    outputMicros: BigInt(one.output_micros_per_million),
  }));
}

function toTools({ value, at }: YamlList<PriceFile>): (ToolPrice & { at: string })[] {
  return value.tools.map((one, index) => ({
    ...toListed(one.tool, one),
    at: at(["tools", index]),
    callMicros: BigInt(one.call_micros),
    wallSecondMicros: BigInt(one.wall_second_micros),
    outputMebibyteMicros: BigInt(one.output_mebibyte_micros),
  }));
}

function toListed(
  name: string,
  one: { valid_from: string; valid_to?: string | undefined; listed_at?: string | undefined; source: string },
): Listed {
  const validFromMs = Date.parse(one.valid_from);
  return {
    pattern: name,
    validFromMs,
    validToMs: one.valid_to === undefined ? null : Date.parse(one.valid_to),
    listedAtMs: one.listed_at === undefined ? validFromMs : Date.parse(one.listed_at),
    source: one.source,
  };
}

function findClashes(all: readonly (Listed & { readonly at: string })[]): string[] {
  const problems = all
    .filter((one) => one.validToMs !== null && one.validToMs <= one.validFromMs)
    .map((one) => `${one.at}: \`${one.pattern}\` ends before it begins`);
  const sorted = [...all].sort((a, b) =>
    a.pattern < b.pattern ? -1 : a.pattern > b.pattern ? 1 : a.validFromMs - b.validFromMs,
  );
  sorted.forEach((one, index) => {
    const before = sorted[index - 1];
    if (before?.pattern !== one.pattern) return;
    if (before.validToMs === null || before.validToMs > one.validFromMs) {
      problems.push(
        `${one.at}: \`${one.pattern}\` is valid while the price of ${before.at} still is; end that one with valid_to`,
      );
    }
  });
  return problems;
}

/**
 * The price of a name at a time: an exact name wins over a pattern, a longer pattern over a shorter one. A price that was
 * put on the list later (`listed_at`) than the call was recorded does not count, although it was valid then: what was
 * booked as unpriced stays so in every rebuild, and is repriced by an entry of its own.
 */
export function findPrice<P extends Listed>(prices: readonly P[], name: string, atMs: EpochMs): P | null {
  return pick(prices, name, (one) => covers(one, atMs) && one.listedAtMs <= atMs);
}

/** The price that was valid at a time, whenever it was put on the list: what a repricing takes. */
export function findPriceInHindsight<P extends Listed>(
  prices: readonly P[],
  name: string,
  atMs: EpochMs,
): P | null {
  return pick(prices, name, (one) => covers(one, atMs));
}

/** Whether a name has a price at any time. */
export function isListed(prices: readonly Listed[], name: string): boolean {
  return pick(prices, name, () => true) !== null;
}

function covers(one: Listed, atMs: EpochMs): boolean {
  return one.validFromMs <= atMs && (one.validToMs === null || atMs < one.validToMs);
}

function pick<P extends Listed>(prices: readonly P[], name: string, fits: (one: P) => boolean): P | null {
  let best: P | null = null;
  for (const one of prices) {
    if (!matches(one.pattern, name) || !fits(one)) continue;
    if (best === null || rank(one.pattern) > rank(best.pattern)) best = one;
  }
  return best;
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function rank(pattern: string): number {
  return pattern.endsWith("*") ? pattern.length : Number.POSITIVE_INFINITY;
}
