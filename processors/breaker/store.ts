import type { Transaction } from "../kit/transaction.ts";
import { judgeScope, sumOf } from "./judge.ts";
import type { Bucket, Crossing } from "./judge.ts";
import { bucketMs, freshMs, longestWindowMs, thresholdsOf } from "./thresholds.ts";
import type { Measure, Thresholds } from "./thresholds.ts";
import type { ScopeKey, Tally } from "./words.ts";
import { countNames } from "./words.ts";

/** A reset, as its event tells. */
export interface Reset extends Omit<ScopeKey, "scope"> {
  readonly eventId: string;
  readonly scope: string;
  readonly tripId: string | null;
  readonly by: string;
  readonly atMs: number;
}

/** A scope that went read-only just now. */
export interface Trip extends ScopeKey, Crossing {
  readonly tripId: string;
  readonly resetsAtMs: number | null;
}

/** What the event was that a trip is found with: the newest of its scope in the batch. */
export interface Crosser {
  readonly eventId: string;
  readonly recordedMs: number;
}

/** Adds resets that are not there yet. */
export async function addResets(tx: Transaction, resets: readonly Reset[]): Promise<void> {
  await tx.query({
    name: "breaker-add-resets",
    text: `INSERT INTO resets (event_id, tenant_id, scope, scope_id, trip_id, reset_by, reset_at)
      SELECT r.event_id, r.tenant_id, r.scope, r.scope_id, r.trip_id, r.reset_by, to_timestamp(r.at_ms / 1000.0)
      FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[])
        AS r(event_id, tenant_id, scope, scope_id, trip_id, reset_by, at_ms)
      ON CONFLICT DO NOTHING`,
    values: [
      resets.map((one) => one.eventId),
      resets.map((one) => one.tenantId),
      resets.map((one) => one.scope),
      resets.map((one) => one.scopeId),
      resets.map((one) => one.tripId),
      resets.map((one) => one.by),
      resets.map((one) => one.atMs),
    ],
  });
}

/**
 * Adds to the buckets, in one order for everybody: two batches that count the same scope wait for each other, and the
 * second sees what the first one added. Answers with the database's time.
 * INVARIANT: sums by the time of recording, whatever the order (test/integration/breaker.test.ts "counts the same …").
 */
export async function addTallies(tx: Transaction, tallies: readonly Tally[]): Promise<number> {
  const sums = new Map<string, { key: ScopeKey; startedMs: number; counts: Tally["counts"][] }>();
  for (const { scopes, startedMs, counts } of tallies) {
    for (const key of scopes) {
      const name = nameOf(key, startedMs);
      const found = sums.get(name);
      if (found === undefined) sums.set(name, { key, startedMs, counts: [counts] });
      else found.counts.push(counts);
    }
  }
  const rows = [...sums]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([, { key, startedMs, counts }]) => ({ key, startedMs, sum: sumOf(counts) }));
  const written = await tx.query<{ now: Date }>({
    name: "breaker-add-buckets",
    text: `INSERT INTO buckets AS b (tenant_id, scope, scope_id, started_at, ${countNames.join(", ")})
      SELECT r.tenant_id, r.scope, r.scope_id, to_timestamp(r.at_ms / 1000.0), ${countNames.map((name) => `r.${name}`).join(", ")}
      FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], ${countNames.map((_, index) => `$${String(index + 5)}::bigint[]`).join(", ")})
        AS r(tenant_id, scope, scope_id, at_ms, ${countNames.join(", ")})
      ON CONFLICT (tenant_id, scope, scope_id, started_at) DO UPDATE
        SET ${countNames.map((name) => `${name} = b.${name} + excluded.${name}`).join(", ")}
      RETURNING clock_timestamp() AS now`,
    values: [
      rows.map(({ key }) => key.tenantId),
      rows.map(({ key }) => key.scope),
      rows.map(({ key }) => key.scopeId),
      rows.map(({ startedMs }) => startedMs),
      ...countNames.map((name) => rows.map(({ sum }) => sum[name])),
    ],
  });
  return written.rows[0]?.now.getTime() ?? 0;
}

/** Whether a bucket of nothing is there would tell of the order in which reports of a model call came. */
export async function dropEmptyBuckets(tx: Transaction, tallies: readonly Tally[]): Promise<void> {
  if (tallies.length === 0) return;
  const keys = tallies.flatMap(({ scopes, startedMs }) => scopes.map((key) => ({ ...key, startedMs })));
  await tx.query({
    name: "breaker-drop-empty-buckets",
    text: `DELETE FROM buckets AS b USING unnest($1::text[], $2::text[], $3::text[], $4::float8[]) AS k(tenant_id, scope, scope_id, at_ms)
      WHERE (b.tenant_id, b.scope, b.scope_id, b.started_at)
          = (k.tenant_id, k.scope, k.scope_id, to_timestamp(k.at_ms / 1000.0)) AND b.events = 0`,
    values: [
      keys.map((one) => one.tenantId),
      keys.map((one) => one.scope),
      keys.map((one) => one.scopeId),
      keys.map((one) => one.startedMs),
    ],
  });
}

interface BucketRow extends Omit<Bucket, "startedMs"> {
  readonly tenant_id: string;
  readonly scope: ScopeKey["scope"];
  readonly scope_id: string;
  readonly started_at: Date;
  readonly reset_at: Date | null;
}

/** A trip that holds: neither reset nor over by its time. `s` is the scope. */
const openTripText = `EXISTS (SELECT FROM trips AS t
    WHERE t.tenant_id = s.tenant_id AND t.scope = s.scope AND t.scope_id = s.scope_id
      AND (t.resets_at IS NULL OR t.resets_at > clock_timestamp())
      AND NOT EXISTS (SELECT FROM resets AS r WHERE r.tenant_id = s.tenant_id AND r.scope = s.scope
        AND r.scope_id = s.scope_id AND r.reset_at >= t.tripped_at))`;

/** Judges the scopes that were counted just now, and writes the trips that there are. */
export async function findTrips(
  tx: Transaction,
  tallies: readonly Tally[],
  crosserOf: (key: ScopeKey) => Crosser,
  { thresholds, nowMs }: { readonly thresholds: Thresholds; readonly nowMs: number },
): Promise<readonly Trip[]> {
  // What is counted into an old window can only make old windows pass, and they trip nothing.
  const latestMs = longestWindowMs(thresholds) + freshMs;
  const fresh = tallies.filter(({ startedMs }) => startedMs > nowMs - latestMs);
  const scopes = new Map(fresh.flatMap((one) => one.scopes.map((key) => [nameOf(key), key] as const)));
  if (scopes.size === 0) return [];
  const least = leastCounts(thresholds);
  const keys = [...scopes.values()];
  const found = await tx.query<BucketRow>({
    name: "breaker-load-buckets",
    text: `WITH s AS (
        SELECT b.tenant_id, b.scope, b.scope_id FROM buckets AS b
        JOIN unnest($1::text[], $2::text[], $3::text[]) AS k(tenant_id, scope, scope_id) USING (tenant_id, scope, scope_id)
        WHERE b.started_at > to_timestamp($4::float8 / 1000)
        GROUP BY b.tenant_id, b.scope, b.scope_id
        HAVING greatest(sum(b.starts), sum(b.spawns)) >= $5::bigint OR sum(b.priced) >= $6::bigint
          OR sum(b.results) >= $7::bigint OR sum(b.decisions) >= $8::bigint OR sum(b.events) >= $9::bigint)
      SELECT b.*, (SELECT max(r.reset_at) FROM resets AS r
        WHERE r.tenant_id = s.tenant_id AND r.scope = s.scope AND r.scope_id = s.scope_id) AS reset_at
      FROM s JOIN buckets AS b USING (tenant_id, scope, scope_id)
      WHERE b.started_at > to_timestamp($4::float8 / 1000) AND NOT ${openTripText}`,
    values: [
      keys.map((one) => one.tenantId),
      keys.map((one) => one.scope),
      keys.map((one) => one.scopeId),
      nowMs - latestMs - bucketMs,
      ...(["fan_out", "cost_rate", "failure_rate", "denial_rate", "lag"] as const).map((name) => least[name]),
    ],
  });
  const byScope = new Map<string, { key: ScopeKey; resetMs: number | null; buckets: Bucket[] }>();
  for (const row of found.rows) {
    const key = { tenantId: row.tenant_id, scope: row.scope, scopeId: row.scope_id };
    const one = byScope.get(nameOf(key)) ?? { key, resetMs: row.reset_at?.getTime() ?? null, buckets: [] };
    one.buckets.push({ ...row, startedMs: row.started_at.getTime() });
    byScope.set(nameOf(key), one);
  }
  const crossings = [...byScope]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .flatMap(([, one]) => {
      const own = thresholdsOf(thresholds, one.key.tenantId).filter(({ scope }) => scope === one.key.scope);
      const crossing = judgeScope(one.buckets, own, { nowMs, resetMs: one.resetMs });
      return crossing === null ? [] : [{ key: one.key, crossing }];
    });
  const trips: Trip[] = [];
  for (const { key, crossing } of crossings) {
    const trip = await addTrip(tx, key, crossing, crosserOf(key));
    if (trip !== null) trips.push(trip);
  }
  return trips;
}

/** Writes a trip unless another batch wrote one in the same moment. */
async function addTrip(
  tx: Transaction,
  key: ScopeKey,
  crossing: Crossing,
  crosser: Crosser,
): Promise<Trip | null> {
  const scope = [key.tenantId, key.scope, key.scopeId];
  await tx.query("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' trip ' || $1, 0))", [
    JSON.stringify(scope),
  ]);
  // A statement of its own, and so a snapshot of its own: what was committed while we waited is seen.
  const written = await tx.query<{ trip_id: string; resets_at: Date | null }>({
    name: "breaker-add-trip",
    text: `INSERT INTO trips (trip_id, tenant_id, scope, scope_id, measure, observed, threshold, samples, window_ms,
        window_ended_at, crossed_by, crossed_at, resets_at)
      SELECT gen_random_uuid(), s.tenant_id, s.scope, s.scope_id, $4, $5::bigint, $6::bigint, $7::bigint, $8::bigint,
        to_timestamp($9::float8 / 1000), $10, to_timestamp($11::float8 / 1000),
        clock_timestamp() + $12::float8 * interval '1 millisecond'
      FROM (SELECT $1::text AS tenant_id, $2::text AS scope, $3::text AS scope_id) AS s WHERE NOT ${openTripText}
      RETURNING trip_id, resets_at`,
    values: [
      ...scope,
      crossing.measure,
      crossing.observed,
      crossing.threshold,
      crossing.samples,
      crossing.windowMs,
      crossing.windowEndedMs,
      crosser.eventId,
      crosser.recordedMs,
      crossing.resetAfterMs,
    ],
  });
  const [row] = written.rows;
  if (row === undefined) return null;
  return { tripId: `trp_${row.trip_id}`, resetsAtMs: row.resets_at?.getTime() ?? null, ...key, ...crossing };
}

/** Fewer than this cannot trip any threshold of a measure. */
function leastCounts({ usual, byTenant }: Thresholds): Readonly<Record<Measure, bigint>> {
  const least: Record<Measure, bigint> = {
    fan_out: never,
    cost_rate: never,
    failure_rate: never,
    denial_rate: never,
    lag: never,
  };
  for (const { measure, limit, minCount } of [usual, ...byTenant.values()].flat()) {
    const count = measure === "fan_out" && limit > minCount ? limit : minCount;
    if (count < least[measure]) least[measure] = count;
  }
  return least;
}
/** The largest int8: a measure that nobody watches. */
const never = 9_223_372_036_854_775_807n;

/** Parts are joined by a sign that no tenant and no scope has. */
function nameOf({ tenantId, scope, scopeId }: ScopeKey, startedMs = 0): string {
  return `${tenantId}|${scope}|${String(startedMs).padStart(16, "0")}|${scopeId}`;
}

/** The key of a scope, for maps. */
export function toScopeName(key: ScopeKey): string {
  return nameOf(key);
}
