-- The life of approvals, rights and effects, what fans out, how long things take, and one row from the user to the end.
-- Everything is made from the trail; between topics there is no order, so times are the least or greatest of their kind.

CREATE VIEW approvals WITH (security_invoker = true) AS
  SELECT approval_id, tenant_id,
    CASE
      WHEN count(*) FILTER (WHERE event_type = 'agent.approval.consumed') > 0 THEN 'consumed'
      WHEN count(*) FILTER (WHERE event_type = 'agent.approval.refused') > 0 THEN 'refused'
      WHEN count(*) FILTER (WHERE event_type = 'agent.approval.voided') > 0 THEN 'voided'
      WHEN count(*) FILTER (WHERE event_type = 'agent.approval.expired') > 0 THEN 'expired'
      WHEN count(*) FILTER (WHERE event_type = 'agent.approval.granted') > 0 THEN 'granted'
      ELSE 'requested'
    END AS state,
    min(recorded_at) FILTER (WHERE event_type = 'agent.approval.requested') AS requested_at,
    min(recorded_at) FILTER (WHERE event_type IN ('agent.approval.granted', 'agent.approval.refused')) AS decided_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.approval.consumed') AS consumed_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.approval.expired') AS expired_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.approval.voided') AS voided_at,
    to_timestamp(max((summary ->> 'expires_at')::bigint) FILTER (WHERE event_type = 'agent.approval.requested') / 1000.0)
      AS expires_at,
    (extract(epoch FROM min(recorded_at) FILTER (WHERE event_type IN ('agent.approval.granted', 'agent.approval.refused'))
      - min(recorded_at) FILTER (WHERE event_type = 'agent.approval.requested')) * 1000)::bigint AS waited_ms,
    max(user_id) FILTER (WHERE event_type IN ('agent.approval.granted', 'agent.approval.refused')) AS approver_id,
    max(summary ->> 'note') FILTER (WHERE event_type IN ('agent.approval.granted', 'agent.approval.refused')) AS note,
    max(user_id) FILTER (WHERE event_type = 'agent.approval.requested') AS requester_id,
    max(agent_id) AS agent_id, max(session_id) AS session_id,
    max(tool_call_id) FILTER (WHERE event_type = 'agent.approval.requested') AS requested_by_call,
    max(tool_call_id) FILTER (WHERE event_type = 'agent.approval.consumed') AS consumed_by_call,
    max(tool) AS tool, max(action) AS action, max(resource_ref) AS resource_ref, max(plan_digest) AS plan_digest,
    max((summary ->> 'risk_score')::integer) FILTER (WHERE event_type = 'agent.approval.requested') AS risk_score,
    max(policy_revision) FILTER (WHERE event_type = 'agent.approval.requested') AS policy_revision,
    min(correlation_id) AS correlation_id
  FROM audit.trail
  WHERE approval_id IS NOT NULL AND event_type LIKE 'agent.approval.%'
  GROUP BY tenant_id, approval_id;

COMMENT ON VIEW approvals IS 'one row per approval: asked for, decided by whom, used or not';
COMMENT ON COLUMN approvals.approval_id IS 'the approval, as fabric approvals show takes it';
COMMENT ON COLUMN approvals.tenant_id IS 'tenant that it belongs to';
COMMENT ON COLUMN approvals.state IS 'requested, granted, consumed, refused, expired or voided';
COMMENT ON COLUMN approvals.requested_at IS 'when the gate asked for it';
COMMENT ON COLUMN approvals.decided_at IS 'when a person granted or refused it; null: nobody did';
COMMENT ON COLUMN approvals.consumed_at IS 'when a call used it; it is good for one';
COMMENT ON COLUMN approvals.expired_at IS 'when it was found to be past its end, unused';
COMMENT ON COLUMN approvals.voided_at IS 'when it stopped to count, because the plan changed or was revoked';
COMMENT ON COLUMN approvals.expires_at IS 'end that it was given';
COMMENT ON COLUMN approvals.waited_ms IS 'milliseconds from requested_at to decided_at';
COMMENT ON COLUMN approvals.approver_id IS 'person who decided; never the one who asked';
COMMENT ON COLUMN approvals.note IS 'what the approver wrote, masked';
COMMENT ON COLUMN approvals.requester_id IS 'person on whose behalf it was asked for';
COMMENT ON COLUMN approvals.agent_id IS 'agent that asked; null for the main agent of a session';
COMMENT ON COLUMN approvals.session_id IS 'session of the runtime';
COMMENT ON COLUMN approvals.requested_by_call IS 'call that the gate held back for it';
COMMENT ON COLUMN approvals.consumed_by_call IS 'call that passed by it; a retry has an id of its own in some runtimes';
COMMENT ON COLUMN approvals.tool IS 'tool of the plan, in the fabric''s words';
COMMENT ON COLUMN approvals.action IS 'what the plan does';
COMMENT ON COLUMN approvals.resource_ref IS 'what it does it to';
COMMENT ON COLUMN approvals.plan_digest IS 'sha256: and hex over the plan that was agreed to';
COMMENT ON COLUMN approvals.risk_score IS 'risk that the policy gave, 0 to 100';
COMMENT ON COLUMN approvals.policy_revision IS 'revision of the bundle that asked';
COMMENT ON COLUMN approvals.correlation_id IS 'one goal of a user';

CREATE VIEW capabilities WITH (security_invoker = true) AS
  SELECT capability_id, tenant_id,
    CASE
      WHEN count(*) FILTER (WHERE event_type = 'agent.capability.revoked') > 0 THEN 'revoked'
      WHEN max((summary ->> 'calls_used')::integer) >= max((summary ->> 'max_calls')::integer) THEN 'used_up'
      WHEN count(*) FILTER (WHERE event_type = 'agent.capability.expired') > 0 THEN 'expired'
      ELSE 'issued'
    END AS state,
    min(recorded_at) FILTER (WHERE event_type = 'agent.capability.issued') AS issued_at,
    to_timestamp(max((summary ->> 'expires_at')::bigint) FILTER (WHERE event_type = 'agent.capability.issued') / 1000.0)
      AS expires_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.capability.spent') AS first_spent_at,
    max(recorded_at) FILTER (WHERE event_type = 'agent.capability.spent') AS last_spent_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.capability.revoked') AS revoked_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.capability.expired') AS expired_at,
    coalesce(max((summary ->> 'calls_used')::integer), 0) AS calls_used,
    max((summary ->> 'max_calls')::integer) AS max_calls,
    max(user_id) FILTER (WHERE event_type = 'agent.capability.issued') AS user_id,
    max(agent_id) FILTER (WHERE event_type = 'agent.capability.issued') AS agent_id,
    max(user_id) FILTER (WHERE event_type = 'agent.capability.spent') AS spent_by,
    max(user_id) FILTER (WHERE event_type = 'agent.capability.revoked') AS revoked_by,
    max(summary ->> 'reason') FILTER (WHERE event_type = 'agent.capability.revoked') AS revoke_reason,
    max(summary ->> 'effect_class') FILTER (WHERE event_type = 'agent.capability.issued') AS effect_class,
    max(session_id) AS session_id,
    max(tool_call_id) FILTER (WHERE event_type = 'agent.capability.issued') AS tool_call_id,
    max(tool) AS tool, max(action) AS action, max(resource_ref) AS resource_ref, max(plan_digest) AS plan_digest,
    max(policy_revision) FILTER (WHERE event_type = 'agent.capability.issued') AS policy_revision,
    min(correlation_id) AS correlation_id
  FROM audit.trail
  WHERE capability_id IS NOT NULL AND event_type LIKE 'agent.capability.%'
  GROUP BY tenant_id, capability_id;

COMMENT ON VIEW capabilities IS 'one row per right to carry out one plan: issued, used, taken back';
COMMENT ON COLUMN capabilities.capability_id IS 'the right, as fabric capabilities revoke takes it';
COMMENT ON COLUMN capabilities.tenant_id IS 'tenant that it belongs to';
COMMENT ON COLUMN capabilities.state IS 'issued, used_up, expired or revoked';
COMMENT ON COLUMN capabilities.issued_at IS 'when the gate issued it';
COMMENT ON COLUMN capabilities.expires_at IS 'end that it was given';
COMMENT ON COLUMN capabilities.first_spent_at IS 'when a resource first accepted it';
COMMENT ON COLUMN capabilities.last_spent_at IS 'when a resource last accepted it';
COMMENT ON COLUMN capabilities.revoked_at IS 'when it was taken back';
COMMENT ON COLUMN capabilities.expired_at IS 'when it was found to be past its end, with calls left';
COMMENT ON COLUMN capabilities.calls_used IS 'calls that it was used for';
COMMENT ON COLUMN capabilities.max_calls IS 'calls that it is good for';
COMMENT ON COLUMN capabilities.user_id IS 'person on whose behalf';
COMMENT ON COLUMN capabilities.agent_id IS 'agent that may use it; null for the main agent of a session';
COMMENT ON COLUMN capabilities.spent_by IS 'resource that accepted it';
COMMENT ON COLUMN capabilities.revoked_by IS 'person who took it back; null: the fabric itself';
COMMENT ON COLUMN capabilities.revoke_reason IS 'why, masked';
COMMENT ON COLUMN capabilities.effect_class IS 'what the plan does to the world: none, read, write, execute, network, spawn';
COMMENT ON COLUMN capabilities.session_id IS 'session of the runtime';
COMMENT ON COLUMN capabilities.tool_call_id IS 'call that it was issued for';
COMMENT ON COLUMN capabilities.tool IS 'tool of the plan, in the fabric''s words';
COMMENT ON COLUMN capabilities.action IS 'what the plan does';
COMMENT ON COLUMN capabilities.resource_ref IS 'what it does it to';
COMMENT ON COLUMN capabilities.plan_digest IS 'sha256: and hex over the plan that it is bound to';
COMMENT ON COLUMN capabilities.policy_revision IS 'revision of the bundle that decided';
COMMENT ON COLUMN capabilities.correlation_id IS 'one goal of a user';

CREATE VIEW effects WITH (security_invoker = true) AS
  SELECT coalesce(effect_id, 'evt_' || event_id) AS effect_id, tenant_id,
    CASE
      WHEN count(*) FILTER (WHERE event_type = 'agent.effect.reconciled') > 0 THEN 'reconciled'
      WHEN count(*) FILTER (WHERE event_type = 'agent.effect.receipted') > 0 THEN 'receipted'
      WHEN count(*) FILTER (WHERE event_type = 'agent.effect.unresolved') > 0 THEN 'unresolved'
      WHEN count(*) FILTER (WHERE event_type = 'agent.effect.ungated') > 0 THEN 'ungated'
      ELSE 'attempted'
    END AS state,
    coalesce(max(summary ->> 'outcome') FILTER (WHERE event_type = 'agent.effect.reconciled'),
      max(summary ->> 'outcome') FILTER (WHERE event_type = 'agent.effect.receipted')) AS outcome,
    min(recorded_at) FILTER (WHERE event_type = 'agent.effect.attempted') AS attempted_at,
    count(*) FILTER (WHERE event_type = 'agent.effect.attempted') AS attempts,
    min(recorded_at) FILTER (WHERE event_type = 'agent.effect.receipted') AS receipted_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.effect.unresolved') AS unresolved_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.effect.reconciled') AS reconciled_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.effect.ungated') AS ungated_at,
    max((summary ->> 'duration_ms')::bigint) FILTER (WHERE event_type = 'agent.effect.receipted') AS duration_ms,
    max(receipt_id) AS receipt_id, max(summary ->> 'status') AS receipt_status,
    max(summary ->> 'connector') AS connector,
    max(summary ->> 'cause') FILTER (WHERE event_type = 'agent.effect.unresolved') AS unresolved_cause,
    max(summary ->> 'evidence') FILTER (WHERE event_type = 'agent.effect.ungated') AS ungated_evidence,
    max(summary ->> 'effect_class') AS effect_class, max(capability_id) AS capability_id,
    max(approval_id) AS approval_id, max(plan_digest) AS plan_digest, max(tool) AS tool, max(action) AS action,
    max(resource_ref) AS resource_ref, max(user_id) AS user_id, max(agent_id) AS agent_id,
    max(session_id) AS session_id, max(tool_call_id) AS tool_call_id, min(correlation_id) AS correlation_id
  FROM audit.trail
  WHERE event_type IN ('agent.effect.attempted', 'agent.effect.receipted', 'agent.effect.unresolved',
    'agent.effect.reconciled', 'agent.effect.ungated')
  GROUP BY tenant_id, coalesce(effect_id, 'evt_' || event_id);

COMMENT ON VIEW effects IS 'one row per effect: sent, answered or lost, found out; also effects that no decision preceded';
COMMENT ON COLUMN effects.effect_id IS 'the effect; for one without an id the event that told of it';
COMMENT ON COLUMN effects.tenant_id IS 'tenant that it belongs to';
COMMENT ON COLUMN effects.state IS 'attempted, receipted, unresolved, reconciled or ungated';
COMMENT ON COLUMN effects.outcome IS 'succeeded, failed, interrupted, blocked, unknown; null while nobody knows';
COMMENT ON COLUMN effects.attempted_at IS 'when it was first sent to its resource';
COMMENT ON COLUMN effects.attempts IS 'how often it was sent';
COMMENT ON COLUMN effects.receipted_at IS 'when the resource answered';
COMMENT ON COLUMN effects.unresolved_at IS 'when the answer was lost';
COMMENT ON COLUMN effects.reconciled_at IS 'when it was found out what became of it';
COMMENT ON COLUMN effects.ungated_at IS 'when it was seen that it ran without a decision';
COMMENT ON COLUMN effects.duration_ms IS 'milliseconds from sending to the answer';
COMMENT ON COLUMN effects.receipt_id IS 'answer of the resource';
COMMENT ON COLUMN effects.receipt_status IS 'the resource''s own word for it, such as an HTTP status';
COMMENT ON COLUMN effects.connector IS 'what carried it out, such as http';
COMMENT ON COLUMN effects.unresolved_cause IS 'why the answer was lost: timeout, connection_lost, crash';
COMMENT ON COLUMN effects.ungated_evidence IS 'what shows that it ran without a decision';
COMMENT ON COLUMN effects.effect_class IS 'what it does to the world: none, read, write, execute, network, spawn';
COMMENT ON COLUMN effects.capability_id IS 'right under which it was carried out';
COMMENT ON COLUMN effects.approval_id IS 'approval behind it';
COMMENT ON COLUMN effects.plan_digest IS 'sha256: and hex over the plan that was carried out';
COMMENT ON COLUMN effects.tool IS 'tool in the fabric''s words';
COMMENT ON COLUMN effects.action IS 'what was done';
COMMENT ON COLUMN effects.resource_ref IS 'what it was done to';
COMMENT ON COLUMN effects.user_id IS 'person on whose behalf';
COMMENT ON COLUMN effects.agent_id IS 'agent behind it; null for the main agent';
COMMENT ON COLUMN effects.session_id IS 'session of the runtime';
COMMENT ON COLUMN effects.tool_call_id IS 'call behind it';
COMMENT ON COLUMN effects.correlation_id IS 'one goal of a user';

CREATE VIEW fan_out WITH (security_invoker = true) AS
  SELECT tenant_id, correlation_id,
    count(DISTINCT session_id) AS sessions,
    count(DISTINCT summary ->> 'subagent_id')
      FILTER (WHERE event_type IN ('agent.subagent.started', 'agent.subagent.stopped')) AS child_agents,
    count(*) FILTER (WHERE event_type = 'agent.subagent.started') AS spawns,
    count(*) FILTER (WHERE event_type = 'agent.subagent.stopped') AS ends,
    count(*) FILTER (WHERE event_type = 'agent.prompt.submitted') AS prompts,
    count(*) FILTER (WHERE event_type = 'agent.tool.requested') AS tool_calls,
    count(*) FILTER (WHERE event_type = 'agent.tool.requested' AND agent_id IS NOT NULL) AS tool_calls_of_children,
    count(*) FILTER (WHERE event_type = 'agent.model.completed') AS model_calls,
    max(hop_count) AS max_hop_count, max(automation_depth) AS max_automation_depth,
    min(recorded_at) AS first_at, max(recorded_at) AS last_at, count(*) AS events, max(user_id)
      FILTER (WHERE event_type = 'agent.prompt.submitted') AS user_id
  FROM audit.trail
  GROUP BY tenant_id, correlation_id;

COMMENT ON VIEW fan_out IS 'one row per correlation: how many children, calls and hops came of one goal';
COMMENT ON COLUMN fan_out.tenant_id IS 'tenant that it belongs to';
COMMENT ON COLUMN fan_out.correlation_id IS 'one goal of a user, across child agents and consumers';
COMMENT ON COLUMN fan_out.sessions IS 'sessions that took part';
COMMENT ON COLUMN fan_out.child_agents IS 'different child agents that began or ended';
COMMENT ON COLUMN fan_out.spawns IS 'times that a child agent began';
COMMENT ON COLUMN fan_out.ends IS 'times that a child agent ended';
COMMENT ON COLUMN fan_out.prompts IS 'prompts that were handed in';
COMMENT ON COLUMN fan_out.tool_calls IS 'tool calls that were asked for';
COMMENT ON COLUMN fan_out.tool_calls_of_children IS 'those of child agents';
COMMENT ON COLUMN fan_out.model_calls IS 'model calls that ended';
COMMENT ON COLUMN fan_out.max_hop_count IS 'most consumers that one chain of it has passed';
COMMENT ON COLUMN fan_out.max_automation_depth IS 'most tasks that one chain of it has started by itself';
COMMENT ON COLUMN fan_out.first_at IS 'first event';
COMMENT ON COLUMN fan_out.last_at IS 'last event up to now';
COMMENT ON COLUMN fan_out.events IS 'all events of it';
COMMENT ON COLUMN fan_out.user_id IS 'person who handed in a prompt; null when unknown';

CREATE VIEW story WITH (security_invoker = true) AS
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
    c.hook_event_id, c.payload_ref, c.requested_at, c.tool, c.action, c.resource_ref, c.plan_digest, c.decision_id,
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

COMMENT ON VIEW story IS 'one row per tool call, from the user to the end: agent, hook, decision, approval, right, tool, receipt, use, final state';
COMMENT ON COLUMN story.tenant_id IS 'tenant that the call belongs to';
COMMENT ON COLUMN story.user_id IS 'person on whose behalf; null when unknown or erased';
COMMENT ON COLUMN story.agent_id IS 'agent that asked; null for the main agent of a session';
COMMENT ON COLUMN story.runtime_kind IS 'adapter of the runtime';
COMMENT ON COLUMN story.session_id IS 'session of the runtime';
COMMENT ON COLUMN story.turn_id IS 'turn within the session';
COMMENT ON COLUMN story.tool_call_id IS 'call of a tool';
COMMENT ON COLUMN story.correlation_id IS 'one goal of a user';
COMMENT ON COLUMN story.hook_event_id IS 'event of the hook that asked; null: nobody asked';
COMMENT ON COLUMN story.payload_ref IS 'vault:// reference of what the hook was given';
COMMENT ON COLUMN story.requested_at IS 'when the hook asked';
COMMENT ON COLUMN story.tool IS 'tool in the fabric''s words';
COMMENT ON COLUMN story.action IS 'what the tool was to do';
COMMENT ON COLUMN story.resource_ref IS 'what it was to be done to';
COMMENT ON COLUMN story.plan_digest IS 'sha256: and hex over the plan';
COMMENT ON COLUMN story.decision_id IS 'last decision about the call';
COMMENT ON COLUMN story.decision IS 'allow, deny, require_approval, defer or modify';
COMMENT ON COLUMN story.reason_code IS 'upper snake case reason of it';
COMMENT ON COLUMN story.matched_rules IS 'ids of every rule that matched, also those that lost';
COMMENT ON COLUMN story.policy_revision IS 'revision of the bundle that decided';
COMMENT ON COLUMN story.decided_at IS 'when';
COMMENT ON COLUMN story.approval_id IS 'approval that the call used, or else asked for';
COMMENT ON COLUMN story.approver_id IS 'person who granted it';
COMMENT ON COLUMN story.approval_granted_at IS 'when it was granted';
COMMENT ON COLUMN story.approval_consumed_at IS 'when it was used';
COMMENT ON COLUMN story.capability_id IS 'right that was issued for the call';
COMMENT ON COLUMN story.capability_issued_at IS 'when it was issued';
COMMENT ON COLUMN story.capability_spent_at IS 'when a resource first accepted it';
COMMENT ON COLUMN story.capability_calls_used IS 'calls that it was used for';
COMMENT ON COLUMN story.capability_revoked_at IS 'when it was taken back';
COMMENT ON COLUMN story.completed_at IS 'when the tool''s result was recorded';
COMMENT ON COLUMN story.outcome IS 'succeeded, failed, interrupted, blocked or unknown, as the runtime told';
COMMENT ON COLUMN story.duration_ms IS 'milliseconds that the tool took, as the runtime told';
COMMENT ON COLUMN story.effect_id IS 'effect under the right';
COMMENT ON COLUMN story.receipt_id IS 'answer of the resource';
COMMENT ON COLUMN story.receipted_at IS 'when it answered';
COMMENT ON COLUMN story.receipt_outcome IS 'what the resource says came of it; found out later where the answer was lost';
COMMENT ON COLUMN story.final_state IS 'refused, ran_against_the_decision, ran_ungated, effect_unknown, the outcome, waits_for_approval, deferred, undecided or no_result_yet';

CREATE VIEW latency WITH (security_invoker = true) AS
  SELECT tenant_id, session_id, tool_call_id, min(correlation_id) AS correlation_id, max(runtime_kind) AS runtime_kind,
    max(tool) AS tool, max(decision) FILTER (WHERE decision_id IS NOT NULL) AS decision,
    min(occurred_at) FILTER (WHERE event_type = 'agent.tool.requested') AS asked_at,
    min(recorded_at) FILTER (WHERE event_type = 'agent.tool.requested') AS requested_at,
    min(recorded_at) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL) AS decided_at,
    max(recorded_at) FILTER (WHERE event_type = 'agent.tool.completed') AS completed_at,
    (extract(epoch FROM min(recorded_at) FILTER (WHERE decision_id IS NOT NULL AND decision IS NOT NULL)
      - min(recorded_at) FILTER (WHERE event_type = 'agent.tool.requested')) * 1000)::bigint AS decide_ms,
    (extract(epoch FROM min(recorded_at) FILTER (WHERE event_type = 'agent.approval.consumed')
      - min(recorded_at) FILTER (WHERE event_type = 'agent.approval.requested')) * 1000)::bigint AS approval_ms,
    max((summary ->> 'duration_ms')::bigint) FILTER (WHERE event_type = 'agent.tool.completed') AS tool_ms,
    (extract(epoch FROM max(recorded_at) FILTER (WHERE event_type = 'agent.tool.completed')
      - min(recorded_at) FILTER (WHERE event_type = 'agent.tool.requested')) * 1000)::bigint AS total_ms
  FROM audit.trail
  WHERE tool_call_id IS NOT NULL
  GROUP BY tenant_id, session_id, tool_call_id;

COMMENT ON VIEW latency IS 'one row per tool call with its times in milliseconds: take percentile_cont over them';
COMMENT ON COLUMN latency.tenant_id IS 'tenant that the call belongs to';
COMMENT ON COLUMN latency.session_id IS 'session of the runtime';
COMMENT ON COLUMN latency.tool_call_id IS 'call of a tool';
COMMENT ON COLUMN latency.correlation_id IS 'one goal of a user';
COMMENT ON COLUMN latency.runtime_kind IS 'adapter of the runtime';
COMMENT ON COLUMN latency.tool IS 'tool in the fabric''s words';
COMMENT ON COLUMN latency.decision IS 'decision about the call';
COMMENT ON COLUMN latency.asked_at IS 'when the runtime says that it asked: another clock than the rest';
COMMENT ON COLUMN latency.requested_at IS 'when the fabric recorded the request';
COMMENT ON COLUMN latency.decided_at IS 'when the first decision was recorded';
COMMENT ON COLUMN latency.completed_at IS 'when the result was recorded';
COMMENT ON COLUMN latency.decide_ms IS 'from requested_at to decided_at';
COMMENT ON COLUMN latency.approval_ms IS 'from asking a person to using the answer, where both were of this call';
COMMENT ON COLUMN latency.tool_ms IS 'how long the tool took, as the runtime told';
COMMENT ON COLUMN latency.total_ms IS 'from requested_at to completed_at';
