import type { GateAnswer, Json } from "../../schemas/gate.ts";
import type { Tx } from "../platform/postgres.ts";
import { plainArray, textArray, wordArray } from "./array-parameter.ts";
import type { ApprovalFact, DatedFact } from "./facts-of-call.ts";
import type { CallDecision } from "./result-check.ts";

/** A plan as it was proposed, of one agent of one session. */
export interface WantedPlan {
  readonly tenantId: string;
  readonly sessionKey: string;
  /** Empty: the session's own agent. */
  readonly agentId: string;
  readonly intentDigest: string;
}
/** A call of a session by its runtime's own name. */
export interface WantedCall {
  readonly sessionKey: string;
  readonly toolCallId: string;
}
/** What a group has to know, by key. */
export interface WantedFacts {
  readonly tenantIds: readonly string[];
  /** Of the calls, and of the sessions that they name as their parents. */
  readonly sessionKeys: readonly string[];
  /** Of calls that ask for a decision. */
  readonly decisionKeys: readonly string[];
  /** Of calls that are only recorded. */
  readonly hookKeys: readonly string[];
  readonly anchorKeys: readonly string[];
  readonly plans: readonly WantedPlan[];
  readonly counterKeys: readonly string[];
  /** Names of dated facts; each is looked up for every tenant. */
  readonly datedNames: readonly string[];
  /** Calls whose result is told. */
  readonly results: readonly WantedCall[];
}
/** Nothing: to prepare the query before the first call needs it. */
export const nothingWanted: WantedFacts = {
  tenantIds: [],
  sessionKeys: [],
  decisionKeys: [],
  hookKeys: [],
  anchorKeys: [],
  plans: [],
  counterKeys: [],
  datedNames: [],
  results: [],
};
export interface TenantFacts {
  readonly state: "active" | "frozen";
  readonly version: number;
}
export interface SessionFacts {
  readonly version: number;
  readonly labels: readonly string[];
  readonly correlation_id: string;
  readonly open_approvals: number;
  readonly automation_depth: number;
  /** Its root session with what that one carries; null: it is its own. */
  readonly root: {
    readonly key: string;
    readonly version: number;
    readonly labels: readonly string[];
    /** The sessions above this one, its parent first and the root last. */
    readonly line: readonly string[];
  } | null;
}
/** A decision that was made on the same call before. */
export interface StoredAnswer {
  readonly decisionId: string;
  /** As stored: a rewritten input is masked here, and exact in `sealed`. */
  readonly answer: GateAnswer;
  readonly sealed: Buffer | null;
  /** Whether its approval is open still, and its right is in force; what the answer does not have counts as true. */
  readonly isInForce: boolean;
  /** Somebody used its right: the call was carried out, or at least begun. */
  readonly isUsed: boolean;
}
/** An approval, and the decision that asked for it. */
export interface KnownApproval extends ApprovalFact {
  readonly decisionId: string;
  /** When a call used it, UTC milliseconds. */
  readonly consumedAtMs: number | null;
}
/** What is known of a plan. */
export interface PlanFacts {
  readonly approval: KnownApproval | null;
  readonly deferredSinceMs: number | null;
}
/** What was found; what is not there is absent. */
export interface GroupFacts {
  /** The database's time when it looked, UTC milliseconds. */
  readonly serverMs: number;
  /** What to add to a time of `performance.now` for the same moment, or an earlier one, by the server's clock. */
  readonly toServerMs: number;
  readonly tenants: ReadonlyMap<string, TenantFacts>;
  readonly sessions: ReadonlyMap<string, SessionFacts>;
  /** By call key. */
  readonly answers: ReadonlyMap<string, StoredAnswer>;
  /** Call keys of observing hooks that were recorded. */
  readonly recorded: ReadonlySet<string>;
  /** Anchor key → event id. */
  readonly anchors: ReadonlyMap<string, string>;
  /** By `planKey`. */
  readonly plans: ReadonlyMap<string, PlanFacts>;
  /** By `ofTenant` of a plan's digest, as proposed or as frozen. A person revokes few, and each for a time. */
  readonly revoked: ReadonlySet<string>;
  readonly counters: ReadonlyMap<string, number>;
  /** By `ofTenant` of the fact's name. */
  readonly dated: ReadonlyMap<string, DatedFact>;
  /** What was decided on calls whose result is told, by `resultKey`: the oldest first. */
  readonly decided: ReadonlyMap<string, readonly CallDecision[]>;
}

/** Key of a plan within a group. */
export function planKey(plan: Omit<WantedPlan, "tenantId">): string {
  return JSON.stringify([plan.sessionKey, plan.agentId, plan.intentDigest]);
}

/** Key of a call whose result is told, within a group. */
export function resultKey({ sessionKey, toolCallId }: WantedCall): string {
  return `${sessionKey}\n${toolCallId}`;
}

/** Key of something that each tenant has its own of, within a group. */
export function ofTenant(tenantId: string, name: string): string {
  return `${tenantId}\n${name}`;
}

/** Most sessions above one that are walked through. */
export const lineMax = 1_000;

/**
 * Each table is joined by its key, so that one plan fits every group: of an array that is not known when the plan is
 * made, the server cannot tell that a partial index would do.
 * A plan that waited in vain is forgotten a day past its deadline; asked again, it waits anew. A session's parents are
 * walked through up to the root, not so far that a loop could hold up the walk.
 */
const factsText = `SELECT
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS server_ms,
  (SELECT jsonb_object_agg(tenant_id, jsonb_build_object('state', state, 'version', version))
     FROM access.tenants WHERE tenant_id = ANY ($1::text[])) AS tenants,
  (SELECT jsonb_object_agg(s.session_key, jsonb_build_object('version', s.version, 'labels', s.labels,
       'correlation_id', s.correlation_id, 'automation_depth', s.automation_depth,
       'open_approvals', (SELECT count(*) FROM gate.approvals AS a
          WHERE a.session_key = s.session_key AND a.state = 'pending' AND a.expires_at > clock_timestamp()),
       'root', CASE WHEN s.root_key IS NULL THEN NULL ELSE (
          WITH RECURSIVE up (key, step) AS (SELECT s.root_key, 1 UNION ALL
            SELECT p.root_key, up.step + 1 FROM up JOIN gate.sessions AS p ON p.session_key = up.key
            WHERE p.root_key IS NOT NULL AND up.step < ${String(lineMax)})
          SELECT jsonb_build_object('key', up.key, 'version', coalesce(r.version, 0),
            'labels', coalesce(to_jsonb(r.labels), '[]'),
            'line', (SELECT jsonb_agg(u.key ORDER BY u.step) FROM up AS u))
          FROM up LEFT JOIN gate.sessions AS r ON r.session_key = up.key ORDER BY up.step DESC LIMIT 1) END))
     FROM gate.sessions AS s WHERE s.session_key = ANY ($2::uuid[])) AS sessions,
  (SELECT jsonb_object_agg(d.call_key, jsonb_build_object('id', d.decision_id, 'answer', d.answer,
       'sealed', (SELECT encode(e.sealed, 'base64') FROM gate.sealed_answers AS e WHERE e.decision_id = d.decision_id),
       'holds', CASE
          WHEN d.decision = 'require_approval' THEN EXISTS (SELECT FROM gate.approvals AS a
            WHERE a.approval_id = substr(d.answer #>> '{approval,id}', 5)::uuid
              AND a.state = 'pending' AND a.expires_at > clock_timestamp())
          WHEN d.answer ? 'capability' THEN EXISTS (SELECT FROM gate.capabilities AS c
            WHERE c.capability_id = substr(d.answer #>> '{capability,id}', 5)::uuid
              AND c.revoked_at IS NULL AND c.expires_at > clock_timestamp())
          ELSE true END,
       'used', d.answer ? 'capability' AND EXISTS (SELECT FROM gate.capabilities AS c
            WHERE c.capability_id = substr(d.answer #>> '{capability,id}', 5)::uuid AND c.calls_used > 0)))
     FROM unnest($3::uuid[]) AS k JOIN gate.decisions AS d ON d.call_key = k) AS answers,
  (SELECT jsonb_object_agg(call_key, true) FROM gate.hook_calls WHERE call_key = ANY ($5::uuid[])) AS recorded,
  (SELECT jsonb_object_agg(anchor_key, event_id) FROM gate.anchors WHERE anchor_key = ANY ($4::uuid[])) AS anchors,
  (SELECT jsonb_agg(jsonb_build_object('at', p.at, 'approval', a.found,
       'since', CASE WHEN d.until > clock_timestamp() - interval '1 day' THEN extract(epoch FROM d.since) * 1000 END))
     FROM unnest($6::text[], $7::uuid[], $8::text[], $9::text[]) WITH ORDINALITY AS p(tenant, session, agent, intent, at)
     LEFT JOIN LATERAL (SELECT jsonb_build_object('id', a.approval_id, 'decision', a.decision_id, 'state', a.state, 'plan_digest', a.plan_digest, 'rules', a.matched_rules,
           'expires_ms', extract(epoch FROM a.expires_at) * 1000,
           'consumed_ms', extract(epoch FROM a.consumed_at) * 1000) AS found
         FROM gate.approvals AS a
         WHERE a.tenant_id = p.tenant AND a.session_key = p.session AND a.agent_id = p.agent AND a.intent_digest = p.intent
         ORDER BY a.created_at DESC, a.approval_id DESC LIMIT 1) AS a ON true
     LEFT JOIN gate.deferrals AS d ON d.session_key = p.session AND d.agent_id = p.agent AND d.intent_digest = p.intent
     WHERE a.found IS NOT NULL OR d.session_key IS NOT NULL) AS plans,
  (SELECT jsonb_agg(jsonb_build_object('tenant', tenant_id, 'name', digest))
     FROM gate.revoked_plans WHERE tenant_id = ANY ($1::text[]) AND until > clock_timestamp()) AS revoked,
  (SELECT jsonb_object_agg(counter_key, spent) FROM gate.counters WHERE counter_key = ANY ($10::text[])) AS counters,
  (SELECT jsonb_agg(jsonb_build_object('tenant', tenant_id, 'name', name, 'value', value,
       'at_ms', extract(epoch FROM at) * 1000))
     FROM gate.dated_facts WHERE tenant_id = ANY ($1::text[]) AND name = ANY ($11::text[])) AS dated,
  (SELECT jsonb_agg(jsonb_build_object('at', w.at, 'id', d.decision_id, 'decision', d.decision, 'tool', d.tool,
       'planDigest', d.plan_digest, 'input', CASE WHEN d.request_ref IS NULL THEN d.request -> 'input' END,
       'inputDigest', d.request -> 'input_digest',
       'modified', d.answer -> 'modified_input') ORDER BY d.decided_at, d.decision_id)
     FROM unnest($12::uuid[], $13::text[]) WITH ORDINALITY AS w(session, call, at)
     JOIN gate.decisions AS d ON d.session_key = w.session AND d.request ->> 'tool_call_id' = w.call) AS decided`;

interface FactsRow {
  readonly server_ms: number;
  readonly tenants: Record<string, TenantFacts> | null;
  readonly sessions: Record<string, SessionFacts> | null;
  readonly answers: Record<
    string,
    {
      readonly id: string;
      readonly answer: GateAnswer;
      readonly sealed: string | null;
      readonly holds: boolean;
      readonly used: boolean;
    }
  > | null;
  readonly recorded: Record<string, true> | null;
  readonly anchors: Record<string, string> | null;
  readonly plans:
    | readonly {
        readonly at: number;
        readonly approval: {
          readonly id: string;
          readonly decision: string;
          readonly state: ApprovalFact["state"];
          readonly plan_digest: string;
          readonly rules: readonly string[];
          readonly expires_ms: number;
          readonly consumed_ms: number | null;
        } | null;
        readonly since: number | null;
      }[]
    | null;
  readonly revoked: readonly { readonly tenant: string; readonly name: string }[] | null;
  readonly counters: Record<string, number> | null;
  readonly dated:
    | readonly {
        readonly tenant: string;
        readonly name: string;
        readonly value: Json;
        readonly at_ms: number;
      }[]
    | null;
  readonly decided: readonly (CallDecision & { readonly at: number })[] | null;
}

/** Fetches the facts of a whole group in one round trip. */
export async function loadFacts(tx: Tx, wanted: WantedFacts): Promise<GroupFacts> {
  const { plans } = wanted;
  const found = await tx.query<FactsRow>({
    name: "gate-facts",
    text: factsText,
    values: [
      wordArray(wanted.tenantIds),
      plainArray(wanted.sessionKeys),
      plainArray(wanted.decisionKeys),
      plainArray(wanted.anchorKeys),
      plainArray(wanted.hookKeys),
      wordArray(plans.map((one) => one.tenantId)),
      plainArray(plans.map((one) => one.sessionKey)),
      textArray(plans.map((one) => one.agentId)),
      wordArray(plans.map((one) => one.intentDigest)),
      textArray(wanted.counterKeys),
      textArray(wanted.datedNames),
      plainArray(wanted.results.map((one) => one.sessionKey)),
      textArray(wanted.results.map((one) => one.toolCallId)),
    ],
  });
  const row = found.rows[0];
  return {
    serverMs: Math.floor(row?.server_ms ?? 0),
    // The server looked at its clock before we look at ours: the sum errs on the early side.
    toServerMs: (row?.server_ms ?? 0) - performance.now(),
    tenants: new Map(Object.entries(row?.tenants ?? {})),
    sessions: new Map(Object.entries(row?.sessions ?? {})),
    answers: new Map(Object.entries(row?.answers ?? {}).map(([key, one]) => [key, toStoredAnswer(one)])),
    recorded: new Set(Object.keys(row?.recorded ?? {})),
    anchors: new Map(Object.entries(row?.anchors ?? {}).map(([key, id]) => [key, `evt_${id}`])),
    plans: new Map(
      (row?.plans ?? []).flatMap((one): [string, PlanFacts][] => {
        const plan = plans[one.at - 1];
        return plan === undefined ? [] : [[planKey(plan), toPlanFacts(one)]];
      }),
    ),
    revoked: new Set((row?.revoked ?? []).map((one) => ofTenant(one.tenant, one.name))),
    counters: new Map(Object.entries(row?.counters ?? {})),
    dated: new Map(
      (row?.dated ?? []).map((one) => [
        ofTenant(one.tenant, one.name),
        { value: one.value, atMs: Math.floor(one.at_ms) },
      ]),
    ),
    decided: toDecided(wanted.results, row?.decided ?? []),
  };
}

function toDecided(
  results: readonly WantedCall[],
  rows: readonly (CallDecision & { readonly at: number })[],
): GroupFacts["decided"] {
  const decided = new Map<string, CallDecision[]>();
  for (const { at, id, ...rest } of rows) {
    const call = results[at - 1];
    if (call === undefined) continue;
    const key = resultKey(call);
    decided.set(key, [...(decided.get(key) ?? []), { ...rest, id: `dec_${id}` }]);
  }
  return decided;
}

function toStoredAnswer(one: NonNullable<FactsRow["answers"]>[string]): StoredAnswer {
  return {
    decisionId: `dec_${one.id}`,
    answer: one.answer,
    sealed: one.sealed === null ? null : Buffer.from(one.sealed, "base64"),
    isInForce: one.holds,
    isUsed: one.used,
  };
}

function toPlanFacts(one: NonNullable<FactsRow["plans"]>[number]): PlanFacts {
  const { approval } = one;
  return {
    approval:
      approval === null
        ? null
        : {
            approvalId: `apr_${approval.id}`,
            decisionId: `dec_${approval.decision}`,
            state: approval.state,
            planDigest: approval.plan_digest,
            rules: approval.rules,
            expiresAtMs: Math.floor(approval.expires_ms),
            consumedAtMs: approval.consumed_ms === null ? null : Math.floor(approval.consumed_ms),
          },
    deferredSinceMs: one.since === null ? null : Math.floor(one.since),
  };
}
