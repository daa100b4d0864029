import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Cause, Emission } from "../kit/emission.ts";
import { toCause } from "../kit/emission.ts";
import type { Processor } from "../kit/processor.ts";
import { defineProcessor } from "../kit/processor.ts";
import { settleReports } from "./model-calls.ts";
import type { Reset, Trip } from "./store.ts";
import { addResets, addTallies, dropEmptyBuckets, findTrips, toScopeName } from "./store.ts";
import type { Thresholds } from "./thresholds.ts";
import type { ModelCost, ScopeKey, Tally } from "./words.ts";
import { fabricTenant, toTally, watchedTypes } from "./words.ts";

/** What the breaker is given: people write thresholds, and what a model call costs is the ledger's to say. */
export interface BreakerSettings {
  readonly thresholds: Thresholds;
  readonly costOf: (event: Envelope<"agent.model.completed">) => ModelCost;
}

type BreakerChange =
  | { readonly kind: "tally"; readonly tally: Tally; readonly from: Cause }
  | { readonly kind: "reset"; readonly reset: Reset };

/**
 * Counts what agents do, and puts a scope to read-only that is past a threshold. What it writes is a trip; that gates
 * heed it is theirs to do.
 */
export function createBreaker({ thresholds, costOf }: BreakerSettings): Processor {
  return defineProcessor({
    name: "breaker",
    topics: [...watchedTypes, "fabric.breaker.reset"],
    emits: ["fabric.breaker.tripped"],
    project(event, source): BreakerChange[] {
      if (event.type === "fabric.breaker.reset") return [{ kind: "reset", reset: toReset(event) }];
      const tally = toTally(event, source, costOf);
      return tally === null ? [] : [{ kind: "tally", tally, from: toCause(event) }];
    },
    async apply(tx, changes) {
      const resets = changes.flatMap((one) => (one.kind === "reset" ? [one.reset] : []));
      if (resets.length > 0) await addResets(tx, resets);
      const counted = changes.filter((one) => one.kind === "tally");
      if (counted.length === 0) return [];
      const { added, takenBack } = await settleReports(
        tx,
        counted.map((one) => one.tally),
      );
      if (added.length === 0) return [];
      const nowMs = await addTallies(tx, [...added, ...takenBack]);
      await dropEmptyBuckets(tx, takenBack);
      /** The newest event of each scope: with it, the limit is passed. */
      const newest = new Map<string, { readonly from: Cause; readonly recordedMs: number }>();
      for (const { tally, from } of counted) {
        for (const key of tally.scopes) {
          const name = toScopeName(key);
          if ((newest.get(name)?.recordedMs ?? -1) <= tally.recordedMs)
            newest.set(name, { from, recordedMs: tally.recordedMs });
        }
      }
      const crosserOf = (key: ScopeKey): { readonly from: Cause; readonly recordedMs: number } => {
        const found = newest.get(toScopeName(key));
        if (found === undefined) throw new Error("a limit was passed by no event");
        return found;
      };
      const trips = await findTrips(
        tx,
        added,
        (key) => {
          const { from, recordedMs } = crosserOf(key);
          return { eventId: from.event_id, recordedMs };
        },
        { thresholds, nowMs },
      );
      return trips.map((trip) => toEmission(trip, crosserOf(trip).from));
    },
  });
}

function toReset(event: Envelope<"fabric.breaker.reset">): Reset {
  const { scope, scope_id, trip_id, reset_by } = event.redacted_summary;
  return {
    eventId: event.event_id.slice("evt_".length),
    tenantId: event.tenant_id,
    scope,
    scopeId: scope_id.replaceAll("\0", ""),
    tripId: trip_id?.replaceAll("\0", "") ?? null,
    by: reset_by.replaceAll("\0", ""),
    atMs: event.recorded_at,
  };
}

/** One alarm per trip: the id is the trip's own. */
function toEmission(trip: Trip, from: Cause): Emission<"fabric.breaker.tripped"> {
  return {
    dedupeKey: trip.tripId,
    cause: trip.scope === "all" ? { ...from, tenant_id: fabricTenant } : from,
    draft: draft("fabric.breaker.tripped", {
      scope: trip.scope,
      scope_id: trip.scopeId,
      measure: trip.measure,
      observed: trip.observed,
      threshold: trip.threshold,
      window_ms: BigInt(trip.windowMs),
      trip_id: trip.tripId,
      window_ended_at: trip.windowEndedMs,
      samples: trip.samples,
      resets_at: trip.resetsAtMs,
    }),
  };
}
