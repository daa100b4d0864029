import { factKinds } from "./fact.ts";
import { recoveryWindow } from "./recovery.ts";

/** Facts about calls that an episode is judged by: the first so many. */
export const judgedCallFacts = 2_000;

const kinds = factKinds.map((kind) => `('${kind}')`).join(", ");

/**
 * The statement that makes episodes from the ledger: $1 their ids, $2 the last `recorded_at` that counts. The same one
 * judges what came in, and a cut in time for a dataset. Every look at the ledger is bounded, however long an episode is.
 * `schema` is empty or `eval.`.
 */
export const toEpisodesText = (schema: "" | "eval."): string => `
  SELECT w.episode_id, o.tenant_id, o.correlation_id, o.environment, o.runtime_kind,
    coalesce(p.user_id, o.user_id) AS user_id, o.session_id, coalesce(s.model, m.model) AS model,
    coalesce(s.working_directory, r.working_directory) AS working_directory, p.preview AS goal,
    o.recorded_at AS started_at, z.recorded_at AS last_event_at,
    CASE
      WHEN t.outcome IS NOT NULL AND (q.event_id IS NULL OR (t.recorded_at, t.event_id) > (q.recorded_at, q.event_id))
        THEN CASE t.outcome WHEN 'succeeded' THEN 'completed' WHEN 'interrupted' THEN 'interrupted' ELSE 'failed' END
      -- It ended, and the last thing that was asked never came to an end of its own.
      WHEN e.event_id IS NOT NULL AND (q.event_id IS NULL OR (e.recorded_at, e.event_id) > (q.recorded_at, q.event_id))
        THEN 'interrupted'
      ELSE 'open'
    END AS state,
    c.steps, c.calls, c.allowed, c.denied, c.held, c.ungated, c.succeeded, c.failed, c.stumbles, c.recoveries
  FROM unnest($1::text[]) AS w(episode_id)
  CROSS JOIN LATERAL (
    SELECT f.* FROM (VALUES ${kinds}) AS k(kind) CROSS JOIN LATERAL (
      SELECT * FROM ${schema}facts AS x WHERE x.episode_id = w.episode_id AND x.kind = k.kind AND x.recorded_at <= $2
      ORDER BY x.recorded_at, x.event_id LIMIT 1) AS f
    ORDER BY f.recorded_at, f.event_id LIMIT 1
  ) AS o
  CROSS JOIN LATERAL (
    SELECT max(f.recorded_at) AS recorded_at FROM (VALUES ${kinds}) AS k(kind) CROSS JOIN LATERAL (
      SELECT x.recorded_at FROM ${schema}facts AS x
      WHERE x.episode_id = w.episode_id AND x.kind = k.kind AND x.recorded_at <= $2
      ORDER BY x.recorded_at DESC LIMIT 1) AS f
  ) AS z
  LEFT JOIN LATERAL ${one(schema, "prompt", "first")} AS p ON true
  LEFT JOIN LATERAL ${one(schema, "prompt", "last")} AS q ON true
  LEFT JOIN LATERAL ${one(schema, "turn", "last", "AND x.outcome IS NOT NULL")} AS t ON true
  LEFT JOIN LATERAL ${one(schema, "ended", "last")} AS e ON true
  LEFT JOIN LATERAL ${one(schema, "session", "first")} AS s ON true
  LEFT JOIN LATERAL ${one(schema, "requested", "first")} AS r ON true
  LEFT JOIN LATERAL ${one(schema, "model", "first")} AS m ON true
  CROSS JOIN LATERAL (${toStepsText(schema)}) AS c`;

function one(schema: string, kind: string, which: "first" | "last", also = ""): string {
  const order = which === "first" ? "x.recorded_at, x.event_id" : "x.recorded_at DESC, x.event_id DESC";
  return `(SELECT x.* FROM ${schema}facts AS x
    WHERE x.episode_id = w.episode_id AND x.kind = '${kind}' AND x.recorded_at <= $2 ${also} ORDER BY ${order} LIMIT 1)`;
}

/** The first value that any fact of the call has; or the last, of the facts that count for it. */
const firstOf = (column: string): string =>
  `(array_agg(x.${column} ORDER BY x.recorded_at, x.event_id) FILTER (WHERE x.${column} IS NOT NULL))[1]`;
const lastDecided = (column: string): string =>
  `(array_agg(x.${column} ORDER BY x.recorded_at DESC, x.event_id DESC) FILTER (WHERE x.kind = 'decision'))[1]`;
/** What the runtime reported goes before what the resource answered, and both before a mere refusal. */
const reported = (column: string): string =>
  `(array_agg(x.${column} ORDER BY array_position(ARRAY['completed', 'receipted', 'refused'], x.kind::text),
    x.recorded_at DESC, x.event_id DESC)
    FILTER (WHERE x.${column} IS NOT NULL AND x.kind IN ('completed', 'receipted', 'refused')))[1]`;

/**
 * Calls in order, and what came of those that did not go through.
 * INVARIANT: a step's \`recovered_by\` is what recovery.ts says (test/property/eval.test.ts).
 */
function toStepsText(schema: string): string {
  return `
    WITH judged AS (
      SELECT * FROM ${schema}facts AS x
      WHERE x.episode_id = w.episode_id AND x.call_key IS NOT NULL AND x.recorded_at <= $2
      ORDER BY x.recorded_at, x.event_id LIMIT ${judgedCallFacts}
    ), merged AS (
      SELECT min(x.recorded_at) AS at, (array_agg(x.event_id ORDER BY x.recorded_at, x.event_id))[1] AS first_event_id,
        ${firstOf("tool")} AS tool, ${firstOf("action")} AS action, ${firstOf("resource")} AS resource,
        ${firstOf("effect_class")} AS effect_class, ${firstOf("plan_digest")} AS plan_digest,
        ${firstOf("preview")} AS input, ${firstOf("agent_id")} AS agent_id,
        ${lastDecided("decision")} AS decision, ${lastDecided("reason_code")} AS reason_code,
        ${reported("outcome")} AS outcome, ${reported("duration_ms")} AS duration_ms,
        bool_or(x.kind = 'refused') AS is_refused, bool_or(x.kind = 'ungated') AS is_ungated
      FROM judged AS x GROUP BY x.call_key
    ), numbered AS (
      SELECT *, row_number() OVER (ORDER BY at, first_event_id) AS number,
        coalesce(outcome = 'succeeded', false) AS has_succeeded,
        coalesce(outcome <> 'succeeded', true) AND (coalesce(decision = 'deny', false) OR is_refused
          OR coalesce(outcome = 'failed', false)) AS has_stumbled
      FROM merged
    ), looked AS (
      SELECT *,
        min(number) FILTER (WHERE has_succeeded AND resource IS NOT NULL) OVER (
          PARTITION BY tool, resource ORDER BY number DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS repaired_by,
        min(number) FILTER (WHERE has_succeeded AND decision IN ('allow', 'modify')) OVER (
          PARTITION BY tool ORDER BY number DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS replanned_by
      FROM numbered
    ), judgement AS (
      SELECT *, CASE WHEN has_stumbled AND tool IS NOT NULL THEN least(
        repaired_by, CASE WHEN replanned_by <= number + ${recoveryWindow} THEN replanned_by END) END AS recovered_by
      FROM looked
    )
    SELECT coalesce(jsonb_agg(jsonb_build_object('number', number,
        'at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'tool', tool, 'action', action,
        'resource', resource, 'effect_class', effect_class, 'plan_digest', plan_digest, 'input', input,
        'agent_id', agent_id, 'decision', decision, 'reason_code', reason_code, 'outcome', outcome,
        'duration_ms', duration_ms, 'refused', is_refused, 'ungated', is_ungated, 'recovered_by', recovered_by)
        ORDER BY number), '[]') AS steps,
      count(*)::integer AS calls,
      (count(*) FILTER (WHERE decision IN ('allow', 'modify')))::integer AS allowed,
      (count(*) FILTER (WHERE decision = 'deny'))::integer AS denied,
      (count(*) FILTER (WHERE decision IN ('require_approval', 'defer')))::integer AS held,
      (count(*) FILTER (WHERE is_ungated))::integer AS ungated,
      (count(*) FILTER (WHERE has_succeeded))::integer AS succeeded,
      (count(*) FILTER (WHERE outcome = 'failed'))::integer AS failed,
      (count(*) FILTER (WHERE has_stumbled))::integer AS stumbles,
      count(recovered_by)::integer AS recoveries
    FROM judgement`;
}
