import type { GateAnswer } from "../../schemas/gate.ts";
import { maskText } from "../platform/mask.ts";
import { toStorableText } from "../platform/masked-preview.ts";
import { toUuid } from "../platform/ids.ts";
import type { Tx } from "../platform/postgres.ts";
import type { EvidenceRow } from "../platform/vault-seal.ts";
import { evidenceColumns } from "../platform/vault-seal.ts";

/** A row of `gate.sessions`. */
export interface SessionRow {
  readonly sessionKey: string;
  readonly tenantId: string;
  readonly runtime: string;
  readonly sessionId: string;
  readonly correlationId: string;
}
/** A row of `gate.decisions`. */
export interface DecisionRow {
  readonly decisionId: string;
  readonly tenantId: string;
  readonly sessionKey: string;
  readonly callKey: string | null;
  readonly requestedEventId: string;
  readonly runtime: string;
  readonly phase: string;
  readonly tool: string;
  readonly effectClass: string;
  readonly answer: GateAnswer;
  /** Masked. */
  readonly request: unknown;
  readonly requestSealed: Buffer | null;
  readonly requestRef: string | null;
  readonly payloadRef: string | null;
  readonly facts: unknown;
}
/** A row of `gate.hook_calls`. */
export interface HookCallRow {
  readonly callKey: string;
  readonly tenantId: string;
}
/** A row of `gate.anchors`. */
export interface AnchorRow {
  readonly anchorKey: string;
  readonly tenantId: string;
  readonly sessionKey: string;
  readonly eventId: string;
}
/** A row of `gate.capabilities`. */
export interface CapabilityRow {
  readonly capabilityId: string;
  readonly tenantId: string;
  readonly decisionId: string;
  readonly sessionKey: string;
  readonly tool: string;
  readonly resource: string | null;
  readonly planDigest: string;
  readonly policyRevision: string;
  readonly constraints: unknown;
  readonly maxCalls: number;
  readonly expiresAt: Date;
}

/** Longest resource that a capability's row shows; the plan is bound by its digest. */
const resourceMaxChars = 1_024;

/** Inserts sessions that are not there yet; in the order of their keys, so that two gates never wait for each other. */
export async function insertSessions(tx: Tx, rows: readonly SessionRow[], at: Date): Promise<void> {
  const sorted = [...rows].sort(by((row) => row.sessionKey));
  await tx.query({
    name: "gate-insert-sessions",
    text: `INSERT INTO gate.sessions (session_key, tenant_id, runtime, session_id, correlation_id, first_seen_at)
      SELECT r.*, $6::timestamptz FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[]) AS r
      ON CONFLICT DO NOTHING`,
    values: [
      sorted.map((row) => row.sessionKey),
      sorted.map((row) => row.tenantId),
      sorted.map((row) => row.runtime),
      sorted.map((row) => toStorableText(row.sessionId)),
      sorted.map((row) => toUuid(row.correlationId)),
      at,
    ],
  });
}

/** Versions that decisions read, held to the end of the transaction: nobody changes these rows before it commits. */
export interface HeldVersions {
  readonly tenants: ReadonlyMap<string, number>;
  readonly sessions: ReadonlyMap<string, number>;
}

/** Reads and holds versions; in the order of keys. */
export async function holdVersions(
  tx: Tx,
  tenantIds: readonly string[],
  sessionKeys: readonly string[],
): Promise<HeldVersions> {
  const found = await tx.query<{ kind: "tenant" | "session"; id: string; version: bigint }>({
    name: "gate-hold-versions",
    text: `WITH held AS (SELECT session_key, version FROM gate.sessions
        WHERE session_key = ANY ($2::uuid[]) ORDER BY session_key FOR SHARE)
      SELECT 'tenant' AS kind, tenant_id AS id, version FROM access.hold_tenants($1::text[])
      UNION ALL SELECT 'session', session_key::text, version FROM held`,
    values: [tenantIds, sessionKeys],
  });
  const ofKind = (kind: string): Map<string, number> =>
    new Map(found.rows.filter((row) => row.kind === kind).map((row) => [row.id, Number(row.version)]));
  return { tenants: ofKind("tenant"), sessions: ofKind("session") };
}

/** Ids and keys of what was new: a call that another transaction has taken is not among them. */
export interface Claimed {
  readonly decisionIds: ReadonlySet<string>;
  readonly callKeys: ReadonlySet<string>;
}

/** Inserts decisions and recorded calls; the unique call key decides who was first. */
export async function claimCalls(
  tx: Tx,
  decisions: readonly DecisionRow[],
  calls: readonly HookCallRow[],
  at: Date,
): Promise<Claimed> {
  if (decisions.length === 0 && calls.length === 0) return { decisionIds: new Set(), callKeys: new Set() };
  // In the order of the keys: two gates that claim the same calls wait for each other in one direction only.
  const rows = [...decisions].sort(by((row) => row.callKey ?? ""));
  const hooks = [...calls].sort(by((row) => row.callKey));
  const found = await tx.query<{ kind: "decision" | "call"; id: string }>({
    name: "gate-claim-calls",
    text: `WITH decided AS (
        INSERT INTO gate.decisions (decision_id, tenant_id, session_key, correlation_id, call_key, requested_event_id,
          runtime, phase, tool, effect_class, decision, reason_code, plan_digest, policy_revision, matched_rules,
          request, request_sealed, request_ref, payload_ref, facts, answer, decided_at)
        SELECT r.decision_id, r.tenant_id, r.session_key, r.correlation_id, r.call_key, r.requested_event_id,
          r.runtime, r.phase, r.tool, r.effect_class, r.answer ->> 'decision', r.answer ->> 'reason_code',
          r.answer ->> 'plan_digest', r.answer ->> 'policy_revision',
          ARRAY(SELECT jsonb_array_elements_text(r.answer -> 'matched_rules')),
          r.request, r.request_sealed, r.request_ref, r.payload_ref, r.facts, r.answer, $17::timestamptz
        FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[], $8::text[],
          $9::text[], $10::text[], $11::jsonb[], $12::bytea[], $13::text[], $14::text[], $15::jsonb[], $16::jsonb[])
          AS r(decision_id, tenant_id, session_key, correlation_id, call_key, requested_event_id, runtime, phase,
            tool, effect_class, request, request_sealed, request_ref, payload_ref, facts, answer)
        ON CONFLICT (call_key) WHERE call_key IS NOT NULL DO NOTHING
        RETURNING decision_id),
      called AS (
        INSERT INTO gate.hook_calls (call_key, tenant_id, recorded_at)
        SELECT r.*, $17::timestamptz FROM unnest($18::uuid[], $19::text[]) AS r
        ON CONFLICT DO NOTHING RETURNING call_key)
      SELECT 'decision' AS kind, decision_id::text AS id FROM decided
      UNION ALL SELECT 'call', call_key::text FROM called`,
    values: [
      rows.map((row) => toUuid(row.decisionId)),
      rows.map((row) => row.tenantId),
      rows.map((row) => row.sessionKey),
      rows.map((row) => toUuid(row.answer.correlation_id)),
      rows.map((row) => row.callKey),
      rows.map((row) => toUuid(row.requestedEventId)),
      rows.map((row) => row.runtime),
      rows.map((row) => row.phase),
      rows.map((row) => row.tool),
      rows.map((row) => row.effectClass),
      rows.map((row) => toJsonColumn(row.request)),
      rows.map((row) => row.requestSealed),
      rows.map((row) => row.requestRef),
      rows.map((row) => row.payloadRef),
      rows.map((row) => toJsonColumn(row.facts)),
      rows.map((row) => toJsonColumn(row.answer)),
      at,
      hooks.map((row) => row.callKey),
      hooks.map((row) => row.tenantId),
    ],
  });
  const ofKind = (kind: string): Set<string> =>
    new Set(found.rows.filter((row) => row.kind === kind).map((row) => row.id));
  return {
    decisionIds: new Set([...ofKind("decision")].map((id) => `dec_${id}`)),
    callKeys: ofKind("call"),
  };
}

/** Writes what belongs to the claimed calls: anchors, capabilities, evidence. One statement. */
export async function saveConsequences(
  tx: Tx,
  anchors: readonly AnchorRow[],
  capabilities: readonly CapabilityRow[],
  evidence: readonly EvidenceRow[],
  at: Date,
): Promise<void> {
  if (anchors.length === 0 && capabilities.length === 0 && evidence.length === 0) return;
  // The last one of a key counts, as if they had come one after the other.
  const latest = [...new Map(anchors.map((row) => [row.anchorKey, row])).values()].sort(
    by((row) => row.anchorKey),
  );
  await tx.query({
    name: "gate-save-consequences",
    text: `WITH anchored AS (
        INSERT INTO gate.anchors (anchor_key, tenant_id, session_key, event_id, recorded_at)
        SELECT r.*, $5::timestamptz FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[]) AS r
        ON CONFLICT (anchor_key) DO UPDATE SET event_id = excluded.event_id, recorded_at = excluded.recorded_at),
      issued AS (
        INSERT INTO gate.capabilities (capability_id, tenant_id, decision_id, session_key, tool, resource, plan_digest,
          policy_revision, constraints, max_calls, expires_at, issued_at)
        SELECT r.*, $5::timestamptz FROM unnest($6::uuid[], $7::text[], $8::uuid[], $9::uuid[], $10::text[],
          $11::text[], $12::text[], $13::text[], $14::jsonb[], $15::int[], $16::timestamptz[]) AS r)
      INSERT INTO vault.evidence (evidence_id, tenant_id, key_version, data_class, digest, nonce, tag, sealed, size_bytes)
      SELECT * FROM unnest($17::uuid[], $18::text[], $19::int[], $20::text[], $21::bytea[], $22::bytea[],
        $23::bytea[], $24::bytea[], $25::int[])`,
    values: [
      latest.map((row) => row.anchorKey),
      latest.map((row) => row.tenantId),
      latest.map((row) => row.sessionKey),
      latest.map((row) => toUuid(row.eventId)),
      at,
      capabilities.map((row) => toUuid(row.capabilityId)),
      capabilities.map((row) => row.tenantId),
      capabilities.map((row) => toUuid(row.decisionId)),
      capabilities.map((row) => row.sessionKey),
      capabilities.map((row) => row.tool),
      capabilities.map((row) =>
        row.resource === null ? null : toStorableText(maskText(row.resource)).slice(0, resourceMaxChars),
      ),
      capabilities.map((row) => row.planDigest),
      capabilities.map((row) => row.policyRevision),
      capabilities.map((row) => toJsonColumn(row.constraints)),
      capabilities.map((row) => row.maxCalls),
      capabilities.map((row) => row.expiresAt),
      ...evidenceColumns(evidence),
    ],
  });
}

/** JSON text that jsonb takes: no NUL and no half of a surrogate pair, in keys and texts. */
function toJsonColumn(value: unknown): string {
  return JSON.stringify(toStorable(value));
}

function toStorable(value: unknown): unknown {
  if (typeof value === "string") return toStorableText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(toStorable);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [toStorableText(name), toStorable(one)]),
  );
}

function by<T>(key: (row: T) => string): (left: T, right: T) => number {
  return (left, right) => (key(left) < key(right) ? -1 : key(left) > key(right) ? 1 : 0);
}
