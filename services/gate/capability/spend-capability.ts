import { newEventId, newUuidV7, toUuid } from "../../platform/ids.ts";
import { notifyOutbox, outboxValues, toOutboxRows } from "../../platform/outbox.ts";
import type { Tx } from "../../platform/postgres.ts";
import type { AskedUse, BoundFault } from "./bounds.ts";
import { firstDifference } from "./bounds.ts";
import type { CapabilityDeps } from "./capability-deps.ts";
import { toSpentEvent } from "./capability-events.ts";
import type { CapabilityState, RecordedUse } from "./capability-state.ts";
import { loadCapability, loadUse } from "./capability-state.ts";
import type { CapabilityClaims } from "./claims.ts";
import { revokeCapabilities } from "./revoke-capabilities.ts";
import type { NamedRight } from "./verify-capability.ts";
import { findRight, isDeniedNow } from "./verify-capability.ts";

/** One use of a right. The key is the resource's own: the same one again is the same use. */
export interface Use extends AskedUse {
  readonly calls: number;
  readonly idempotencyKey: string;
  readonly spentBy: string;
}

export type SpendOutcome =
  | {
      readonly kind: "spent";
      readonly use: RecordedUse;
      readonly state: CapabilityState;
      readonly repeated: boolean;
    }
  | { readonly kind: "refused"; readonly fault: BoundFault };

/** Uses up calls of a right, or says why not. After `spent` they are used, whatever becomes of the one who asked. */
export async function spendCapability(
  deps: CapabilityDeps,
  tenantId: string,
  named: NamedRight,
  use: Use,
): Promise<SpendOutcome> {
  const found = await findRight(deps, tenantId, named, use);
  if (found.kind === "bad") return { kind: "refused", fault: found.fault };
  if (await isDeniedNow(deps, found.state)) {
    const { capabilityId } = found.state;
    const reason = `policy ${deps.policy.revision()} does not allow the plan`;
    await revokeCapabilities(
      deps,
      tenantId,
      { kind: "capability", capabilityId },
      { reason, revokedBy: null },
    );
    return { kind: "refused", fault: "policy_revision" };
  }
  const outcome = await deps.database.transaction((tx) =>
    spendHeld(tx, deps, found.state.capabilityId, tenantId, found.claims, use),
  );
  if (outcome.kind === "spent" && !outcome.repeated) notifyOutbox(deps.database);
  return outcome;
}

async function spendHeld(
  tx: Tx,
  deps: CapabilityDeps,
  capabilityId: string,
  tenantId: string,
  claims: CapabilityClaims | null,
  use: Use,
): Promise<SpendOutcome> {
  // INVARIANT: no use is committed after a freeze, nor more than the budget, nor two under one key
  // (test/integration/capability.test.ts "is waited for by a freeze, after which nothing is spent", "lets one of sixteen
  // at two gates spend a budget of one", "counts a use once, however often and wherever it is asked for").
  await tx.query({
    name: "capability-hold",
    // The tenant first, then the row: in another order a freeze that waits could close a circle.
    text: `WITH held AS MATERIALIZED (SELECT count(*) AS n FROM access.hold_tenants(ARRAY[$2]))
      SELECT FROM gate.capabilities WHERE capability_id = $1::uuid AND tenant_id = $2 AND (SELECT n FROM held) >= 0
      FOR UPDATE`,
    values: [toUuid(capabilityId), tenantId],
  });
  // Statements of their own, and so snapshots of their own: what was committed while we waited is seen.
  const state = await loadCapability(tx, tenantId, capabilityId);
  if (state === null) return { kind: "refused", fault: "unknown" };
  const fault = firstDifference(state, claims, use);
  if (fault !== null) return { kind: "refused", fault };
  const earlier = await loadUse(tx, capabilityId, use.idempotencyKey);
  if (earlier !== null) {
    if (earlier.calls !== use.calls || earlier.spentBy !== use.spentBy)
      return { kind: "refused", fault: "idempotency_key" };
    return { kind: "spent", use: earlier, state, repeated: true };
  }
  const callsUsed = state.callsUsed + use.calls;
  if (callsUsed > state.maxCalls) return { kind: "refused", fault: "spent" };
  const recorded: RecordedUse = {
    usageId: `use_${newUuidV7(deps.clock.nowMs())}`,
    calls: use.calls,
    callsUsed,
    spentBy: use.spentBy,
  };
  const event = toSpentEvent(state, recorded, {
    eventId: newEventId(deps.clock),
    nowMs: deps.clock.nowMs(),
    environment: deps.environment,
  });
  const written = await tx.query({
    name: "capability-spend",
    text: `WITH used AS (
        UPDATE gate.capabilities SET calls_used = calls_used + $2::integer
        WHERE capability_id = $1::uuid AND calls_used + $2::integer <= max_calls AND revoked_at IS NULL
          AND expires_at > clock_timestamp()
        RETURNING capability_id, calls_used),
      noted AS (
        INSERT INTO gate.capability_spends (capability_id, idempotency_key, usage_id, calls, calls_used, spent_by)
        SELECT capability_id, $3, $4::uuid, $2::integer, calls_used, $5 FROM used)
      SELECT outbox.append($6::uuid[], $7, $8, $9, $10, $11::jsonb[]) AS added FROM used`,
    values: [
      toUuid(capabilityId),
      use.calls,
      use.idempotencyKey,
      toUuid(recorded.usageId),
      use.spentBy,
      ...outboxValues(toOutboxRows(deps.codec, [event])),
    ],
  });
  // All else is held: only its time can have come since the last statement.
  if (written.rowCount === 0) return { kind: "refused", fault: "expired" };
  return { kind: "spent", use: recorded, state: { ...state, callsUsed }, repeated: false };
}
