import type { Transaction } from "../kit/transaction.ts";

/** Tables of the projection, in the order in which they are dumped; trips depend on when the breaker looked. */
export const dumpTables = [
  // Of two copies of an event the first one that came tells how long it waited.
  { table: "buckets", orderBy: "tenant_id, scope, scope_id, started_at", without: ["wait_ms"] },
  { table: "resets", orderBy: "event_id" },
  { table: "model_calls", orderBy: "tenant_id, call_key", without: ["wait_ms"] },
] as const;

/** Longer than any window, and enough to see afterwards what led to a trip. */
const keptDays = 7;

/** Takes away buckets that no window reaches any more, and the model calls that are in them; returns how many buckets. */
export async function pruneBuckets(tx: Transaction): Promise<number> {
  const gone = await tx.query({
    text: `DELETE FROM breaker.buckets WHERE started_at < now() - interval '${String(keptDays)} days'`,
  });
  await tx.query({
    text: `DELETE FROM breaker.model_calls WHERE recorded_at < now() - interval '${String(keptDays)} days'`,
  });
  return gone.rowCount;
}
