import type { Envelope } from "../../schemas/envelope.ts";
import type { Transaction } from "../kit/transaction.ts";
import { clean } from "./words.ts";

/** A tenant whose content is to be gone. Names are those of the columns. */
export interface Erasure {
  readonly event_id: string;
  readonly tenant_id: string;
  readonly erased_until: string;
}

/** An event as an erasure: of what was recorded up to its moment, and of nothing that is yet to come. */
export function toErasure(event: Envelope<"fabric.tenant.erased">): Erasure {
  const untilMs = Math.min(event.redacted_summary.erased_until_at, event.recorded_at);
  return {
    event_id: event.event_id.slice("evt_".length),
    tenant_id: clean(event.tenant_id),
    erased_until: new Date(untilMs).toISOString(),
  };
}

/** Batches with facts of a tenant, and its erasure, come one after the other: neither misses what the other wrote. */
export async function holdTenants(
  tx: Transaction,
  tenantIds: readonly string[],
  isErasing: boolean,
): Promise<void> {
  await tx.query({
    name: isErasing ? "eval-hold-erased" : "eval-hold-tenants",
    // 1702257011 names the class of these locks. In one order, so that two never wait for each other.
    text: `SELECT pg_advisory_xact_lock${isErasing ? "" : "_shared"}(1702257011, k.h)
      FROM (SELECT DISTINCT hashtext(current_schema() || '/' || id) AS h FROM unnest($1::text[]) AS id ORDER BY 1) AS k`,
    values: [[...new Set(tenantIds)]],
  });
}

/** Episodes whose content went with an erasure. */
export async function addErasures(tx: Transaction, erasures: readonly Erasure[]): Promise<readonly string[]> {
  await tx.query({
    name: "eval-add-erasures",
    text: `INSERT INTO erasures SELECT * FROM json_populate_recordset(NULL::erasures, $1::json)
      ON CONFLICT (event_id) DO NOTHING`,
    values: [JSON.stringify(erasures)],
  });
  const tenantIds = [...new Set(erasures.map((one) => one.tenant_id))];
  const blanked = await tx.query<{ episode_id: string }>({
    name: "eval-erase-facts",
    text: `WITH blanked AS (
        UPDATE facts AS f SET user_id = NULL, resource = NULL, preview = NULL, working_directory = NULL
        FROM (${erasedText}) AS e
        WHERE f.tenant_id = e.tenant_id AND f.recorded_at <= e.erased_until
          AND (f.user_id, f.resource, f.preview, f.working_directory) IS DISTINCT FROM (NULL, NULL, NULL, NULL)
        RETURNING f.episode_id
      ) SELECT DISTINCT episode_id FROM blanked`,
    values: [tenantIds],
  });
  await tx.query({
    name: "eval-erase-notes",
    text: `UPDATE labels AS l SET note = NULL FROM (${erasedText}) AS e
      WHERE l.tenant_id = e.tenant_id AND l.recorded_at <= e.erased_until AND l.note IS NOT NULL`,
    values: [tenantIds],
  });
  return blanked.rows.map((row) => row.episode_id);
}

/** Content of a fact of an erased tenant. What people judged stays, and what they noted goes. */
export const blank = { user_id: null, resource: null, preview: null, working_directory: null } as const;

/** Up to when each tenant's content is gone, UTC milliseconds; absent: nothing of it is. */
export async function loadErasedUntil(
  tx: Transaction,
  tenantIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const found = await tx.query<{ tenant_id: string; erased_until: Date }>({
    name: "eval-erased-until",
    text: erasedText,
    values: [tenantIds],
  });
  return new Map(found.rows.map((row) => [row.tenant_id, row.erased_until.getTime()]));
}

/** Whether something was recorded before its tenant's erasure. */
export function isErased(
  one: { readonly tenant_id: string; readonly recorded_at: string },
  erasedUntil: ReadonlyMap<string, number>,
): boolean {
  const until = erasedUntil.get(one.tenant_id);
  return until !== undefined && Date.parse(one.recorded_at) <= until;
}

/** $1 tenants: up to when each one's content is gone. */
const erasedText = `SELECT tenant_id, max(erased_until) AS erased_until FROM erasures
  WHERE tenant_id = ANY ($1::text[]) GROUP BY tenant_id`;
