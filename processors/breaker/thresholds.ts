import { z } from "zod";
import { parseYamlList } from "../kit/yaml-list.ts";

/** What can be put to read-only. */
export const breakerScopes = ["correlation", "agent", "tenant", "all"] as const;
export type Scope = (typeof breakerScopes)[number];

/** What is watched; the unit of a limit is in `deploy/breaker.yaml`. */
export const measures = ["fan_out", "cost_rate", "failure_rate", "denial_rate", "lag"] as const;
export type Measure = (typeof measures)[number];

/** When a scope trips: observed above the limit, over a window with enough to tell from. */
export interface Threshold {
  readonly scope: Scope;
  readonly measure: Measure;
  readonly windowMs: number;
  readonly limit: bigint;
  readonly minCount: bigint;
  /** Null: only a person resets it. */
  readonly resetAfterMs: number | null;
}

/** Thresholds of everybody, and of tenants that have their own. */
export interface Thresholds {
  readonly usual: readonly Threshold[];
  readonly byTenant: ReadonlyMap<string, readonly Threshold[]>;
}

/** What came of the file of thresholds. */
export type ThresholdsOutcome =
  | { readonly ok: true; readonly thresholds: Thresholds }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Buckets of this width are the grain of a window: small, so that a window ends close to now. */
export const bucketMs = 5_000;
/** A window that ended before is an old backlog's, and trips nothing. */
export const freshMs = 60_000;
/** Longer windows are budgets' work, and each look reads a window's buckets. */
const windowMaxSeconds = 900;

const thresholdSchema = z
  .strictObject({
    scope: z.enum(breakerScopes),
    measure: z.enum(measures),
    window_seconds: z
      .number()
      .int()
      .min(bucketMs / 1_000)
      .max(windowMaxSeconds)
      .refine((seconds) => seconds % (bucketMs / 1_000) === 0, "a window is a multiple of 5 seconds"),
    limit: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
    min_count: z.number().int().min(1).max(1_000_000_000),
    reset_after_seconds: z.number().int().min(10).max(86_400).optional(),
  })
  .refine(({ measure, limit }) => !measure.endsWith("_rate") || measure === "cost_rate" || limit < 1_000, {
    path: ["limit"],
    message: "a share is per mille: it never gets above 1000",
  });
const fileSchema = z.strictObject({
  note: z.string().optional(),
  thresholds: z.array(thresholdSchema),
  tenants: z
    .record(z.string().regex(/^[a-z0-9-]{1,64}$/, "is no tenant"), z.array(thresholdSchema))
    .default({}),
});

/** Reads the file of thresholds; each measure of a scope is there once. */
export function parseThresholds(file: string, text: string): ThresholdsOutcome {
  const parsed = parseYamlList<z.output<typeof fileSchema>>(file, text, fileSchema);
  if (!parsed.ok) return parsed;
  const { value, at } = parsed.list;
  const lists: [readonly (string | number)[], z.output<typeof thresholdSchema>[]][] = [
    [["thresholds"], value.thresholds],
    ...Object.entries(value.tenants).map(
      ([tenant, list]): [readonly string[], z.output<typeof thresholdSchema>[]] => [
        ["tenants", tenant],
        list,
      ],
    ),
  ];
  const problems = lists.flatMap(([path, list]) =>
    list.flatMap((one, index) => {
      const where = at([...path, index]);
      const isTwice = list.findIndex((other) => isSame(other, one)) < index;
      return [
        ...(isTwice ? [`${where}: ${one.measure} of ${one.scope} is there twice`] : []),
        ...(path.length > 1 && one.scope === "all" ? [`${where}: \`all\` is no tenant's`] : []),
      ];
    }),
  );
  if (problems.length > 0) return { ok: false, problems };
  const usual = value.thresholds.map(toThreshold);
  return {
    ok: true,
    thresholds: {
      usual,
      byTenant: new Map(
        Object.entries(value.tenants).map(([tenant, list]) => {
          const own = list.map(toThreshold);
          return [tenant, [...usual.filter((one) => !own.some((other) => isSame(other, one))), ...own]];
        }),
      ),
    },
  };
}

/** The thresholds that hold for a tenant. */
export function thresholdsOf({ usual, byTenant }: Thresholds, tenantId: string): readonly Threshold[] {
  return byTenant.get(tenantId) ?? usual;
}

/** The longest window of all. */
export function longestWindowMs({ usual, byTenant }: Thresholds): number {
  return Math.max(bucketMs, ...[usual, ...byTenant.values()].flat().map(({ windowMs }) => windowMs));
}

function isSame(one: { scope: Scope; measure: Measure }, other: { scope: Scope; measure: Measure }): boolean {
  return one.scope === other.scope && one.measure === other.measure;
}

function toThreshold(one: z.output<typeof thresholdSchema>): Threshold {
  return {
    scope: one.scope,
    measure: one.measure,
    windowMs: one.window_seconds * 1_000,
    limit: BigInt(one.limit),
    minCount: BigInt(one.min_count),
    resetAfterMs: one.reset_after_seconds === undefined ? null : one.reset_after_seconds * 1_000,
  };
}
