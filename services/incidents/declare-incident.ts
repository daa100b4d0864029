import { Fault } from "../../schemas/faults.ts";
import { newEventId, newUuidV7 } from "../platform/ids.ts";
import { toTextPreview } from "../platform/masked-preview.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import { toDeclaredEvent } from "./hold-events.ts";
import type { HoldRow, IncidentScope } from "./hold-row.ts";
import { fabricTenant, holdColumns, toHoldRow } from "./hold-row.ts";
import type { IncidentDeps } from "./incident-deps.ts";

const reasonMaxChars = 512;

/** What is frozen, by whom, and why. */
export interface Declaration {
  /** Of who declares it. */
  readonly tenantId: string;
  readonly scope: IncidentScope;
  /** Null for `all`, and for one's own tenant. */
  readonly scopeId: string | null;
  readonly kind: string;
  readonly reason: string;
  readonly by: string;
}

/** A person's words as rows and events show them. */
export function toShownReason(reason: string): string {
  return toTextPreview(reason, reasonMaxChars);
}

/**
 * Freezes a scope. When this returns no decision and no use of a right is committed any more that did not see it, at any
 * gate, whether or not Kafka is there.
 * INVARIANT: test/integration/incidents.test.ts.
 */
export async function declareIncident(deps: IncidentDeps, one: Declaration): Promise<HoldRow> {
  const { tenantId, scopeId } = toPlace(one);
  const hold = await deps.database.transaction(async (tx) => {
    if (tenantId !== "*") {
      const found = await tx.query("SELECT FROM access.tenants WHERE tenant_id = $1", [tenantId]);
      if (found.rowCount === 0) throw new Fault("TENANT_UNKNOWN", `\`${tenantId}\``);
    }
    const written = await tx.query({
      name: "incidents-declare",
      text: `INSERT INTO incidents.holds (hold_id, source, mode, tenant_id, scope, scope_id, kind, reason, declared_by)
        VALUES ($1::uuid, 'incident', 'frozen', $2, $3, $4, $5, $6, $7) RETURNING ${holdColumns}`,
      values: [
        newUuidV7(deps.clock.nowMs()),
        tenantId,
        one.scope,
        scopeId,
        one.kind,
        toShownReason(one.reason),
        one.by,
      ],
    });
    const [row] = written.rows;
    if (row === undefined) throw new Fault("INTERNAL", "an incident was not written");
    const held = toHoldRow(row);
    const event = toDeclaredEvent(held, {
      eventId: newEventId(deps.clock),
      nowMs: held.declaredAt.getTime(),
      environment: deps.environment,
    });
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return held;
  });
  notifyOutbox(deps.database);
  return hold;
}

/** Whom it concerns: other tenants, and all of them, are for people of the tenant `fabric`. */
function toPlace(one: Declaration): { readonly tenantId: string; readonly scopeId: string } {
  const isFabric = one.tenantId === fabricTenant;
  const named = one.scope === "tenant" ? (one.scopeId ?? one.tenantId) : one.tenantId;
  if (!isFabric && (one.scope === "all" || named !== one.tenantId)) {
    throw new Fault("ROLE_MISSING", `only people of the tenant \`${fabricTenant}\` freeze other tenants`);
  }
  if (one.scope === "all") return { tenantId: "*", scopeId: "*" };
  if (one.scope === "tenant") return { tenantId: named, scopeId: named };
  if (one.scopeId === null) throw new Fault("REQUEST_INVALID", `a ${one.scope} is needed`);
  return { tenantId: one.tenantId, scopeId: one.scopeId };
}
