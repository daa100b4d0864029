import { Fault } from "../../schemas/faults.ts";
import type { Tx } from "../platform/postgres.ts";

/** What an incident can be declared for. */
export const incidentScopes = ["all", "tenant", "correlation", "session", "agent", "user", "tool"] as const;
export type IncidentScope = (typeof incidentScopes)[number];

/** The tenant of what concerns every tenant. */
export const fabricTenant = "fabric";

/** A hold as it stands, by the server's clock. */
export interface HoldRow {
  readonly holdId: string;
  readonly source: "breaker" | "incident";
  readonly mode: "read_only" | "frozen";
  /** Null: every tenant. */
  readonly tenantId: string | null;
  readonly scope: IncidentScope;
  readonly scopeId: string;
  readonly kind: string;
  readonly reason: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly declaredBy: string;
  readonly declaredAt: Date;
  readonly until: Date | null;
  readonly liftedAt: Date | null;
  readonly liftedBy: string | null;
  readonly liftReason: string | null;
  readonly isOpen: boolean;
}

interface StoredHold {
  readonly hold_id: string;
  readonly source: HoldRow["source"];
  readonly mode: HoldRow["mode"];
  readonly tenant_id: string;
  readonly scope: IncidentScope;
  readonly scope_id: string;
  readonly kind: string;
  readonly reason: string;
  readonly evidence: Record<string, unknown>;
  readonly declared_by: string;
  readonly declared_at: Date;
  readonly until: Date | null;
  readonly lifted_at: Date | null;
  readonly lifted_by: string | null;
  readonly lift_reason: string | null;
  readonly is_open: boolean;
}

/** Columns of a hold, for a row of `incidents.holds`. */
export const holdColumns = `hold_id, source, mode, tenant_id, scope, scope_id, kind, reason, evidence, declared_by,
  declared_at, until, lifted_at, lifted_by, lift_reason,
  lifted_at IS NULL AND (until IS NULL OR until > clock_timestamp()) AS is_open`;

/** A row of `holdColumns`. */
export function toHoldRow(found: Record<string, unknown>): HoldRow {
  const row = found as unknown as StoredHold;
  return {
    holdId: row.hold_id,
    source: row.source,
    mode: row.mode,
    tenantId: row.tenant_id === "*" ? null : row.tenant_id,
    scope: row.scope,
    scopeId: row.scope_id,
    kind: row.kind,
    reason: row.reason,
    evidence: row.evidence,
    declaredBy: row.declared_by,
    declaredAt: row.declared_at,
    until: row.until,
    liftedAt: row.lifted_at,
    liftedBy: row.lifted_by,
    liftReason: row.lift_reason,
    isOpen: row.is_open,
  };
}

/** A tenant's holds and those of everybody, the newest first. Of the tenant `fabric`: all there are. */
export async function listHolds(
  tx: Tx,
  tenantId: string,
  wanted: { readonly source: HoldRow["source"]; readonly onlyOpen: boolean; readonly limit: number },
): Promise<HoldRow[]> {
  const found = await tx.query({
    name: "incidents-list",
    text: `SELECT ${holdColumns} FROM incidents.holds
      WHERE source = $2 AND ($1 = '${fabricTenant}' OR tenant_id IN ($1, '*'))
        AND (NOT $3 OR (lifted_at IS NULL AND (until IS NULL OR until > clock_timestamp())))
      ORDER BY declared_at DESC, hold_id LIMIT $4`,
    values: [tenantId, wanted.source, wanted.onlyOpen, wanted.limit],
  });
  return found.rows.map(toHoldRow);
}

/**
 * A hold that somebody of a tenant may end, locked; null: there is none that he may know of. What holds every tenant is
 * ended by somebody of the tenant `fabric`.
 */
export async function lockHold(
  tx: Tx,
  tenantId: string,
  one: { readonly holdId: string; readonly source: HoldRow["source"] },
): Promise<HoldRow | null> {
  const found = await tx.query({
    name: "incidents-lock",
    text: `SELECT ${holdColumns} FROM incidents.holds
      WHERE hold_id = $1::uuid AND source = $2 AND ($3 = '${fabricTenant}' OR tenant_id IN ($3, '*')) FOR UPDATE`,
    values: [one.holdId, one.source, tenantId],
  });
  const [row] = found.rows;
  if (row === undefined) return null;
  const hold = toHoldRow(row);
  if (hold.tenantId === null && tenantId !== fabricTenant) {
    throw new Fault(
      "ROLE_MISSING",
      `it holds every tenant: somebody of the tenant \`${fabricTenant}\` ends it`,
    );
  }
  return hold;
}
