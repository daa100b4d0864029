import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { newUuidV7 } from "../platform/ids.ts";
import { notifyOutbox, outboxValues, toOutboxRows } from "../platform/outbox.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";
import { toDeed, toReason } from "./recovery-event.ts";

/** Events that a consumer's fan-out guard holds back. */
export interface HeldEmissions {
  readonly consumer: string;
  readonly held_for: string;
  readonly held_since: Date;
  readonly events: number;
  readonly bytes: bigint;
  readonly types: readonly string[];
}

/** What a read-only scope held back stays without a guard of its consumer, and is released in the same way. */
const heldText = `SELECT p.processor AS consumer, coalesce(g.reason, 'their goal was read-only') AS held_for,
    coalesce(g.held_since, min(h.held_at)) AS held_since, count(h.id)::int AS events,
    coalesce(sum(octet_length(h.payload)), 0)::bigint AS bytes,
    coalesce(array_agg(DISTINCT h.type ORDER BY h.type) FILTER (WHERE h.type IS NOT NULL), '{}') AS types
  FROM (SELECT processor FROM host.emission_guards UNION SELECT processor FROM host.held_emissions) AS p
    LEFT JOIN host.emission_guards AS g USING (processor) LEFT JOIN host.held_emissions AS h USING (processor)`;
const heldGroup = "GROUP BY p.processor, g.reason, g.held_since";

/** Consumers that are held back, the longest first. */
export async function listEmissions(deps: RecoveryDeps): Promise<readonly HeldEmissions[]> {
  const found = await deps.database.query<HeldEmissions>(`${heldText} ${heldGroup} ORDER BY 3, 1`);
  return found.rows;
}

/**
 * Ends the guard of a consumer: what was held back goes out, oldest first, or is thrown away. Throws EMISSIONS_UNKNOWN when
 * nothing is held back. The events stay in the database's memory, however many they are.
 * INVARIANT: test/integration/host-emissions.test.ts "are not held back by a batch that read the guard before …".
 */
export async function endHolding(
  deps: RecoveryDeps,
  consumer: string,
  choice: "released" | "dropped",
  how: { readonly by: string; readonly reason: string },
): Promise<HeldEmissions> {
  const ended = await deps.database.transaction(async (tx) => {
    const found = await tx.query<HeldEmissions>(`${heldText} WHERE p.processor = $1 ${heldGroup}`, [
      consumer,
    ]);
    const [before] = found.rows;
    if (before === undefined) throw new Fault("EMISSIONS_UNKNOWN", `nothing of \`${consumer}\` is held back`);
    // Set aside in the database first: what the event says of them is what was taken, whatever came in meanwhile.
    await tx.query(
      "CREATE TEMPORARY TABLE taken_emissions ON COMMIT DROP AS SELECT * FROM host.take_held_emissions($1)",
      [consumer],
    );
    const taken = await tx.query<{ events: number }>("SELECT count(*)::int AS events FROM taken_emissions");
    const events = taken.rows[0]?.events ?? 0;
    const summary = {
      consumer,
      events,
      held_since_at: before.held_since.getTime(),
      held_for: before.held_for,
      reason: toReason(how.reason),
    };
    const deed = toDeed(
      deps,
      choice === "released"
        ? draft("fabric.emission.released", { ...summary, released_by: how.by })
        : draft("fabric.emission.dropped", { ...summary, dropped_by: how.by }),
      { by: how.by, correlationId: `cor_${newUuidV7(deps.clock.nowMs())}` },
    );
    await tx.query(
      `SELECT outbox.append(array_agg(event_id ORDER BY id) || $1::uuid[], array_agg(type ORDER BY id) || $2::text[],
          array_agg(ordering_key ORDER BY id) || $3::text[], array_agg(tenant_id ORDER BY id) || $4::text[],
          array_agg(payload ORDER BY id) || $5::bytea[], array_agg(headers ORDER BY id) || $6::jsonb[])
        FROM taken_emissions WHERE $7::boolean`,
      [...outboxValues(toOutboxRows(deps.codec, [deed])), choice === "released"],
    );
    return { ...before, events };
  });
  notifyOutbox(deps.database);
  return ended;
}
