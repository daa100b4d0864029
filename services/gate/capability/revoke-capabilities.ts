import type { Envelope } from "../../../schemas/envelope.ts";
import { Fault } from "../../../schemas/faults.ts";
import { newEventId, newUuidV7, toUuid } from "../../platform/ids.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../platform/outbox.ts";
import type { Tx } from "../../platform/postgres.ts";
import type { CapabilityDeps } from "./capability-deps.ts";
import type { EventPlace } from "./capability-events.ts";
import { toPlanRevokedEvent, toRevokedEvent } from "./capability-events.ts";
import { stateColumns, stateJoins, toCapabilityState } from "./capability-state.ts";

type Deps = Omit<CapabilityDeps, "signer" | "policy">;

/** Which rights end. Of a session, a plan or a subject: all that are alive, of one tenant. */
export type Revocation =
  | { readonly kind: "capability"; readonly capabilityId: string }
  | { readonly kind: "plan"; readonly planDigest: string; readonly forMs: number }
  | { readonly kind: "session"; readonly sessionId: string }
  /** The user on whose behalf the agent works. */
  | { readonly kind: "subject"; readonly subject: string };

/** Who takes rights back, and why. Null: the gate itself. */
export interface Cut {
  readonly reason: string;
  readonly revokedBy: string | null;
}

/** Rights that one transaction ends: it holds the lanes of that many correlations. */
const batchSize = 500;

/** Live rights were issued within the longest life of one; see the constraint of their table. */
const aliveText = `c.tenant_id = $1 AND c.issued_at > clock_timestamp() - interval '1 hour' AND c.revoked_at IS NULL
  AND c.expires_at > clock_timestamp() AND c.calls_used < c.max_calls`;

const matchText: Readonly<Record<Revocation["kind"], string>> = {
  capability: "c.capability_id = $2::uuid",
  plan: "c.plan_digest = $2",
  session: "s.session_id = $2",
  subject: "d.request ->> 'user_id' = $2",
};

/** Ends rights, and returns how many. They are dead at every gate when this returns: each use reads the row. */
export async function revokeCapabilities(
  deps: Deps,
  tenantId: string,
  what: Revocation,
  cut: Cut,
): Promise<number> {
  let ended = 0;
  for (let isFirst = true; ; isFirst = false) {
    const batch = await deps.database.transaction((tx) =>
      revokeBatch(tx, deps, tenantId, what, cut, isFirst),
    );
    ended += batch;
    if (batch < batchSize) break;
  }
  notifyOutbox(deps.database);
  return ended;
}

async function revokeBatch(
  tx: Tx,
  deps: Deps,
  tenantId: string,
  what: Revocation,
  cut: Cut,
  isFirst: boolean,
): Promise<number> {
  const untilMs = what.kind === "plan" && isFirst ? await rememberPlan(tx, tenantId, what, cut) : null;
  const found = await tx.query({
    text: `SELECT ${stateColumns} FROM gate.capabilities AS c ${stateJoins}
      WHERE ${aliveText} AND ${matchText[what.kind]}
      ORDER BY c.capability_id LIMIT ${String(batchSize)} FOR UPDATE OF c`,
    values: [tenantId, toValue(what)],
  });
  const states = found.rows.map(toCapabilityState);
  const reached = states.length < batchSize ? states.length : await countAlive(tx, tenantId, what);
  await tx.query({
    name: "capability-revoke",
    text: `UPDATE gate.capabilities SET revoked_at = clock_timestamp(), revoked_by = $2, revoke_reason = $3
      WHERE capability_id = ANY ($1::uuid[])`,
    values: [states.map((one) => toUuid(one.capabilityId)), cut.revokedBy ?? "fabric", cut.reason],
  });
  const events: Envelope[] = states.map((state) =>
    toRevokedEvent(state, { ...cut, scope: what.kind }, toPlace(deps)),
  );
  if (what.kind === "plan" && untilMs !== null) {
    const plan = {
      tenantId,
      digest: what.planDigest,
      reason: cut.reason,
      revokedBy: cut.revokedBy ?? "fabric",
      capabilities: reached,
      untilMs,
      correlationId: `cor_${newUuidV7(deps.clock.nowMs())}`,
    };
    events.unshift(toPlanRevokedEvent(plan, toPlace(deps)));
  }
  await appendOutbox(tx, toOutboxRows(deps.codec, events));
  return states.length;
}

/** The plan stays revoked for its time; a second revocation can only lengthen it. Returns its end, UTC milliseconds. */
async function rememberPlan(
  tx: Tx,
  tenantId: string,
  plan: { readonly planDigest: string; readonly forMs: number },
  cut: Cut,
): Promise<number> {
  const written = await tx.query<{ until: Date }>({
    name: "capability-revoke-plan",
    text: `INSERT INTO gate.revoked_plans AS r (tenant_id, digest, until, reason, revoked_by)
      VALUES ($1, $2, clock_timestamp() + $3::float8 * interval '1 millisecond', $4, $5)
      ON CONFLICT (tenant_id, digest) DO UPDATE SET until = greatest(r.until, excluded.until),
        reason = excluded.reason, revoked_by = excluded.revoked_by, revoked_at = excluded.revoked_at
      RETURNING until`,
    values: [tenantId, plan.planDigest, plan.forMs, cut.reason, cut.revokedBy ?? "fabric"],
  });
  const row = written.rows[0];
  if (row === undefined) throw new Fault("INTERNAL", "a revoked plan was not written");
  return row.until.getTime();
}

/** Rights that this transaction and the ones after it end. */
async function countAlive(tx: Tx, tenantId: string, what: Revocation): Promise<number> {
  const found = await tx.query<{ n: number }>({
    text: `SELECT count(*)::integer AS n FROM gate.capabilities AS c ${stateJoins}
      WHERE ${aliveText} AND ${matchText[what.kind]}`,
    values: [tenantId, toValue(what)],
  });
  return found.rows[0]?.n ?? 0;
}

function toValue(what: Revocation): string {
  switch (what.kind) {
    case "capability":
      return toUuid(what.capabilityId);
    case "plan":
      return what.planDigest;
    case "session":
      return what.sessionId;
    case "subject":
      return what.subject;
  }
}

function toPlace(deps: Deps): EventPlace {
  return { eventId: newEventId(deps.clock), nowMs: deps.clock.nowMs(), environment: deps.environment };
}
