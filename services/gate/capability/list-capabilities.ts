import type { Tx } from "../../platform/postgres.ts";
import type { CapabilityState } from "./capability-state.ts";
import { heldByText, stateColumns, stateJoins, toCapabilityState } from "./capability-state.ts";

/** What can be said of a right in one word; what comes first holds. */
export const capabilityWords = ["revoked", "spent", "expired", "held", "live"] as const;
export type CapabilityWord = (typeof capabilityWords)[number];

/** A right for people. */
export interface ListedCapability extends CapabilityState {
  readonly word: CapabilityWord;
}

const wordText = `CASE
    WHEN c.revoked_at IS NOT NULL THEN 'revoked'
    WHEN EXISTS (SELECT FROM gate.revoked_plans AS r WHERE r.tenant_id = c.tenant_id AND r.digest = c.plan_digest
      AND r.until > clock_timestamp()) THEN 'revoked'
    WHEN c.calls_used >= c.max_calls THEN 'spent'
    WHEN c.expires_at <= clock_timestamp() THEN 'expired'
    WHEN ${heldByText} IS NOT NULL THEN 'held'
    ELSE 'live' END`;

/** A tenant's rights, the newest first. */
export async function listCapabilities(
  tx: Tx,
  tenantId: string,
  wanted: {
    readonly word: CapabilityWord | null;
    readonly sessionId: string | null;
    /** How far back. */
    readonly hours: number;
    readonly limit: number;
  },
): Promise<ListedCapability[]> {
  const found = await tx.query<Record<string, unknown> & { word: CapabilityWord }>({
    name: "capability-list",
    text: `SELECT ${stateColumns}, ${wordText} AS word FROM gate.capabilities AS c ${stateJoins}
      WHERE c.tenant_id = $1 AND ($2::text IS NULL OR s.session_id = $2) AND ($3::text IS NULL OR ${wordText} = $3)
        AND c.issued_at > clock_timestamp() - $5::integer * interval '1 hour'
      ORDER BY c.issued_at DESC, c.capability_id LIMIT $4`,
    values: [tenantId, wanted.sessionId, wanted.word, wanted.limit, wanted.hours],
  });
  return found.rows.map((row) => ({ ...toCapabilityState(row), word: row.word }));
}
