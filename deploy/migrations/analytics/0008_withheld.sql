-- Where raw payloads lie is told to those who may read evidence, and to no analyst: by the desk and by SQL alike. The column
-- stays, empty for analysts. Who asks is who logged in, which neither SET nor SET ROLE changes; asked once per query.

CREATE OR REPLACE VIEW audit_trail WITH (security_invoker = true) AS
  SELECT event_id, event_type, tenant_id, environment, occurred_at, recorded_at, user_id, agent_id, runtime_kind,
    runtime_version, permission_mode, task_id, session_id, turn_id, tool_call_id, attempt, correlation_id, causation_id,
    origin, hop_count, automation_depth, tool, action, resource_ref, data_class, policy_revision, risk, decision,
    reason_code, matched_rules, decision_id, capability_id, approval_id, plan_digest, effect_id, receipt_id,
    CASE WHEN (SELECT pg_has_role(session_user, 'fabric_auditor', 'MEMBER')) THEN payload_ref END AS payload_ref,
    summary, topic, partition, kafka_offset, erased_at IS NOT NULL AS erased
  FROM audit.trail;

COMMENT ON COLUMN audit_trail.payload_ref IS 'vault:// reference of the raw payload: for auditors; null for analysts, as at the desk';

CREATE OR REPLACE VIEW story WITH (security_invoker = true) AS
  WITH calls AS (
    SELECT tenant_id, session_id, tool_call_id,
      max(user_id) FILTER (WHERE event_type IN ('agent.tool.requested', 'agent.permission.requested')) AS user_id,
      max(agent_id) AS agent_id, max(runtime_kind) FILTER (WHERE runtime_kind <> 'fabric') AS runtime_kind,
      min(turn_id) AS turn_id, min(correlation_id) AS correlation_id,
      min('evt_' || event_id) FILTER (WHERE event_type IN ('agent.tool.requested', 'agent.permission.requested')) AS hook_event_id,
      min(payload_ref) FILTER (WHERE event_type IN ('agent.tool.requested', 'agent.permission.requested')) AS payload_ref,
      min(recorded_at) FILTER (WHERE event_type IN ('agent.tool.requested', 'agent.permission.requested')) AS requested_at,
      max(tool) AS tool, max(action) AS action, max(resource_ref) AS resource_ref,
      max(plan_digest) AS plan_digest,
      (array_agg(decision ORDER BY recorded_at DESC, event_id DESC) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL))[1] AS decision,
      (array_agg(reason_code ORDER BY recorded_at DESC, event_id DESC) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL))[1] AS reason_code,
      (array_agg(matched_rules::text ORDER BY recorded_at DESC, event_id DESC) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL))[1]::text[] AS matched_rules,
      (array_agg(policy_revision ORDER BY recorded_at DESC, event_id DESC) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL))[1] AS policy_revision,
      (array_agg(decision_id ORDER BY recorded_at DESC, event_id DESC) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL))[1] AS decision_id,
      max(recorded_at) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL) AS decided_at,
      coalesce(max(approval_id) FILTER (WHERE event_type = 'agent.approval.consumed'), max(approval_id)) AS approval_id,
      max(capability_id) AS capability_id,
      max(recorded_at) FILTER (WHERE event_type = 'agent.tool.completed') AS completed_at,
      max(summary ->> 'outcome') FILTER (WHERE event_type = 'agent.tool.completed') AS outcome,
      max((summary ->> 'duration_ms')::bigint) FILTER (WHERE event_type = 'agent.tool.completed') AS duration_ms
    FROM audit.trail
    WHERE tool_call_id IS NOT NULL
    GROUP BY tenant_id, session_id, tool_call_id
  )
  SELECT c.tenant_id, c.user_id, c.agent_id, c.runtime_kind, c.session_id, c.turn_id, c.tool_call_id, c.correlation_id,
    c.hook_event_id,
    CASE WHEN (SELECT pg_has_role(session_user, 'fabric_auditor', 'MEMBER')) THEN c.payload_ref END AS payload_ref,
    c.requested_at, c.tool, c.action, c.resource_ref, c.plan_digest, c.decision_id,
    c.decision, c.reason_code, c.matched_rules, c.policy_revision, c.decided_at, c.approval_id, a.approver_id,
    a.granted_at AS approval_granted_at, a.consumed_at AS approval_consumed_at, c.capability_id,
    r.issued_at AS capability_issued_at, r.spent_at AS capability_spent_at, r.calls_used AS capability_calls_used,
    r.revoked_at AS capability_revoked_at, c.completed_at, c.outcome, c.duration_ms, e.effect_id, e.receipt_id,
    e.receipted_at, e.outcome AS receipt_outcome,
    CASE
      WHEN c.outcome = 'blocked' OR (c.decision = 'deny' AND c.completed_at IS NULL) THEN 'refused'
      WHEN c.completed_at IS NOT NULL AND c.decision IN ('deny', 'require_approval', 'defer') THEN 'ran_against_the_decision'
      WHEN c.completed_at IS NOT NULL AND c.decision IS NULL THEN 'ran_ungated'
      WHEN e.unresolved AND e.outcome IS NULL THEN 'effect_unknown'
      WHEN c.completed_at IS NOT NULL THEN coalesce(c.outcome, 'unknown')
      WHEN c.decision = 'require_approval' THEN 'waits_for_approval'
      WHEN c.decision = 'defer' THEN 'deferred'
      WHEN c.decision IS NULL THEN 'undecided'
      ELSE 'no_result_yet'
    END AS final_state
  FROM calls AS c
  LEFT JOIN LATERAL (
    SELECT max(t.user_id) FILTER (WHERE t.event_type = 'agent.approval.granted') AS approver_id,
      min(t.recorded_at) FILTER (WHERE t.event_type = 'agent.approval.granted') AS granted_at,
      min(t.recorded_at) FILTER (WHERE t.event_type = 'agent.approval.consumed') AS consumed_at
    FROM audit.trail AS t WHERE t.approval_id = c.approval_id AND t.tenant_id = c.tenant_id
  ) AS a ON c.approval_id IS NOT NULL
  LEFT JOIN LATERAL (
    SELECT min(t.recorded_at) FILTER (WHERE t.event_type = 'agent.capability.issued') AS issued_at,
      min(t.recorded_at) FILTER (WHERE t.event_type = 'agent.capability.spent') AS spent_at,
      max((t.summary ->> 'calls_used')::integer) AS calls_used,
      min(t.recorded_at) FILTER (WHERE t.event_type = 'agent.capability.revoked') AS revoked_at
    FROM audit.trail AS t WHERE t.capability_id = c.capability_id AND t.tenant_id = c.tenant_id
  ) AS r ON c.capability_id IS NOT NULL
  LEFT JOIN LATERAL (
    SELECT max(t.effect_id) AS effect_id, max(t.receipt_id) AS receipt_id,
      min(t.recorded_at) FILTER (WHERE t.event_type = 'agent.effect.receipted') AS receipted_at,
      coalesce(max(t.summary ->> 'outcome') FILTER (WHERE t.event_type = 'agent.effect.reconciled'),
        max(t.summary ->> 'outcome') FILTER (WHERE t.event_type = 'agent.effect.receipted')) AS outcome,
      bool_or(t.event_type = 'agent.effect.unresolved') AS unresolved
    FROM audit.trail AS t
    WHERE t.capability_id = c.capability_id AND t.tenant_id = c.tenant_id AND t.effect_id IS NOT NULL
  ) AS e ON c.capability_id IS NOT NULL;

COMMENT ON COLUMN story.payload_ref IS 'vault:// reference of what the hook was given: for auditors; null for analysts, as at the desk';

COMMENT ON VIEW cost_calls IS 'one row per call, child agent or correction that counts; two reports of one call are one row, and a repricing counts while the call that it reprices does';
COMMENT ON COLUMN cost_by_day.unpriced_calls IS 'calls that had no price when they were booked; a repricing of one is in amount_micros, and cost_unpriced has those that miss one still';
COMMENT ON COLUMN cost_budgets.soft_micros IS 'limit that warns, as it was when something was last spent; null: none';
COMMENT ON COLUMN cost_budgets.hard_micros IS 'limit that the gate may refuse by, as it was when something was last spent; null: none';

CREATE VIEW breaker_trips WITH (security_invoker = true) AS
  SELECT 'trp_' || t.trip_id AS trip_id, t.tenant_id,
    CASE WHEN r.reset_at IS NOT NULL THEN 'reset' WHEN t.resets_at <= now() THEN 'ended' ELSE 'read_only' END AS state,
    t.scope, t.scope_id, t.measure, t.observed, t.threshold, t.samples, t.window_ms, t.window_ended_at, t.tripped_at,
    t.crossed_by AS crossed_by_event_id, t.resets_at, r.reset_at, r.reset_by
  FROM breaker.trips AS t
  LEFT JOIN LATERAL (
    SELECT o.reset_at, o.reset_by FROM breaker.resets AS o
    WHERE o.tenant_id = t.tenant_id AND o.scope = t.scope AND o.scope_id = t.scope_id AND o.reset_at >= t.tripped_at
    ORDER BY o.reset_at, o.event_id LIMIT 1
  ) AS r ON true;

COMMENT ON VIEW breaker_trips IS 'one row per time that a scope went read-only: what was counted, what limit it passed, and how it ended';
COMMENT ON COLUMN breaker_trips.trip_id IS 'the trip, as fabric.breaker.tripped names it';
COMMENT ON COLUMN breaker_trips.tenant_id IS 'tenant whose scope it is; fabric for a trip over all tenants';
COMMENT ON COLUMN breaker_trips.state IS 'read_only, reset (by a person) or ended (by its time)';
COMMENT ON COLUMN breaker_trips.scope IS 'correlation, agent, tenant or all';
COMMENT ON COLUMN breaker_trips.scope_id IS 'which one of them';
COMMENT ON COLUMN breaker_trips.measure IS 'fan_out, cost_rate, failure_rate, denial_rate or lag';
COMMENT ON COLUMN breaker_trips.observed IS 'what was counted in the window, in the unit of the measure';
COMMENT ON COLUMN breaker_trips.threshold IS 'limit that it passed';
COMMENT ON COLUMN breaker_trips.samples IS 'how many it was counted from';
COMMENT ON COLUMN breaker_trips.window_ms IS 'length of the window';
COMMENT ON COLUMN breaker_trips.window_ended_at IS 'end of the window, by the time of recording';
COMMENT ON COLUMN breaker_trips.tripped_at IS 'when the scope went read-only';
COMMENT ON COLUMN breaker_trips.crossed_by_event_id IS 'event whose count passed the limit, with its evt_ prefix';
COMMENT ON COLUMN breaker_trips.resets_at IS 'when it ends by itself; null: a person resets it';
COMMENT ON COLUMN breaker_trips.reset_at IS 'when a person reset it';
COMMENT ON COLUMN breaker_trips.reset_by IS 'who';
