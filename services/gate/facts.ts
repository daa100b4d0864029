import type { GateAnswer } from "../../schemas/gate.ts";
import type { Tx } from "../platform/postgres.ts";
import { plainArray, wordArray } from "./array-parameter.ts";

/** What a group has to know, by key. */
export interface WantedFacts {
  readonly tenantIds: readonly string[];
  readonly sessionKeys: readonly string[];
  /** Of calls that ask for a decision. */
  readonly decisionKeys: readonly string[];
  /** Of calls that are only recorded. */
  readonly hookKeys: readonly string[];
  readonly anchorKeys: readonly string[];
}
export interface TenantFacts {
  readonly state: "active" | "frozen";
  readonly version: number;
}
export interface SessionFacts {
  readonly version: number;
  readonly labels: readonly string[];
  readonly correlation_id: string;
}
/** What was found; what is not there is absent. */
export interface GroupFacts {
  /** What to add to a time of `performance.now` for the same moment, or an earlier one, by the server's clock. */
  readonly toServerMs: number;
  readonly tenants: ReadonlyMap<string, TenantFacts>;
  readonly sessions: ReadonlyMap<string, SessionFacts>;
  /** Call key → the stored answer. */
  readonly answers: ReadonlyMap<string, GateAnswer>;
  /** Call keys of observing hooks that were recorded. */
  readonly recorded: ReadonlySet<string>;
  /** Anchor key → event id. */
  readonly anchors: ReadonlyMap<string, string>;
}

const factsText = `SELECT
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS server_ms,
  (SELECT jsonb_object_agg(tenant_id, jsonb_build_object('state', state, 'version', version))
     FROM access.tenants WHERE tenant_id = ANY ($1::text[])) AS tenants,
  (SELECT jsonb_object_agg(session_key, jsonb_build_object('version', version, 'labels', labels, 'correlation_id', correlation_id))
     FROM gate.sessions WHERE session_key = ANY ($2::uuid[])) AS sessions,
  (SELECT jsonb_object_agg(call_key, answer) FROM gate.decisions WHERE call_key = ANY ($3::uuid[])) AS answers,
  (SELECT jsonb_object_agg(call_key, true) FROM gate.hook_calls WHERE call_key = ANY ($5::uuid[])) AS recorded,
  (SELECT jsonb_object_agg(anchor_key, event_id) FROM gate.anchors WHERE anchor_key = ANY ($4::uuid[])) AS anchors`;

interface FactsRow {
  readonly server_ms: number;
  readonly tenants: Record<string, TenantFacts> | null;
  readonly sessions: Record<string, SessionFacts> | null;
  readonly answers: Record<string, GateAnswer> | null;
  readonly recorded: Record<string, true> | null;
  readonly anchors: Record<string, string> | null;
}

/** Fetches the facts of a whole group in one round trip. */
export async function loadFacts(tx: Tx, wanted: WantedFacts): Promise<GroupFacts> {
  const found = await tx.query<FactsRow>({
    name: "gate-facts",
    text: factsText,
    values: [
      wordArray(wanted.tenantIds),
      plainArray(wanted.sessionKeys),
      plainArray(wanted.decisionKeys),
      plainArray(wanted.anchorKeys),
      plainArray(wanted.hookKeys),
    ],
  });
  const row = found.rows[0];
  return {
    // The server looked at its clock before we look at ours: the sum errs on the early side.
    toServerMs: (row?.server_ms ?? 0) - performance.now(),
    tenants: new Map(Object.entries(row?.tenants ?? {})),
    sessions: new Map(Object.entries(row?.sessions ?? {})),
    answers: new Map(Object.entries(row?.answers ?? {})),
    recorded: new Set(Object.keys(row?.recorded ?? {})),
    anchors: new Map(Object.entries(row?.anchors ?? {}).map(([key, id]) => [key, `evt_${id}`])),
  };
}
