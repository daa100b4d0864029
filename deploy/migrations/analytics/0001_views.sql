-- What analysts read. Names are stable; a change adds a column or a view. Rights are those of the reader, not the owner.

CREATE VIEW audit_trail WITH (security_invoker = true) AS
  SELECT event_id, event_type, tenant_id, environment, occurred_at, recorded_at, user_id, agent_id, runtime_kind,
    runtime_version, permission_mode, task_id, session_id, turn_id, tool_call_id, attempt, correlation_id, causation_id,
    origin, hop_count, automation_depth, tool, action, resource_ref, data_class, policy_revision, risk, decision,
    reason_code, matched_rules, decision_id, capability_id, approval_id, plan_digest, effect_id, receipt_id, payload_ref,
    summary, topic, partition, kafka_offset, erased_at IS NOT NULL AS erased
  FROM audit.trail;

COMMENT ON VIEW audit_trail IS 'one row per event: who did what, under which policy, by which right, with which outcome';
COMMENT ON COLUMN audit_trail.event_id IS 'identity of the event; evt_ and this on the wire';
COMMENT ON COLUMN audit_trail.event_type IS 'type, which is also the topic without its prefix';
COMMENT ON COLUMN audit_trail.tenant_id IS 'tenant that the event belongs to';
COMMENT ON COLUMN audit_trail.environment IS 'deployment environment of the agent, such as production';
COMMENT ON COLUMN audit_trail.occurred_at IS 'when it happened, by the clock of whoever reported it: a claim';
COMMENT ON COLUMN audit_trail.recorded_at IS 'when the fabric recorded it: use this one for windows and order';
COMMENT ON COLUMN audit_trail.user_id IS 'person on whose behalf; null when unknown or erased';
COMMENT ON COLUMN audit_trail.agent_id IS 'agent that acted; null for the main agent of a session';
COMMENT ON COLUMN audit_trail.runtime_kind IS 'adapter of the runtime, or fabric for the fabric itself';
COMMENT ON COLUMN audit_trail.runtime_version IS 'version of the runtime, where it tells';
COMMENT ON COLUMN audit_trail.permission_mode IS 'permission mode of the runtime at that moment';
COMMENT ON COLUMN audit_trail.task_id IS 'admitted task that the work belongs to';
COMMENT ON COLUMN audit_trail.session_id IS 'session of the runtime';
COMMENT ON COLUMN audit_trail.turn_id IS 'turn within the session';
COMMENT ON COLUMN audit_trail.tool_call_id IS 'call of a tool; groups request, decision, effect and result';
COMMENT ON COLUMN audit_trail.attempt IS 'from 1; higher for a retry of the same intent';
COMMENT ON COLUMN audit_trail.correlation_id IS 'one goal of a user, across child agents and consumers';
COMMENT ON COLUMN audit_trail.causation_id IS 'event that directly caused this one, with its evt_ prefix';
COMMENT ON COLUMN audit_trail.origin IS 'human, agent, webhook, schedule, or processor:<name>';
COMMENT ON COLUMN audit_trail.hop_count IS 'consumers that the chain has passed';
COMMENT ON COLUMN audit_trail.automation_depth IS 'tasks that the chain has started by itself';
COMMENT ON COLUMN audit_trail.tool IS 'tool in the fabric''s words, such as shell.run';
COMMENT ON COLUMN audit_trail.action IS 'what the tool was to do';
COMMENT ON COLUMN audit_trail.resource_ref IS 'what it was to be done to; null when unknown or erased';
COMMENT ON COLUMN audit_trail.data_class IS 'class of the data: public, internal, confidential, secret, unknown';
COMMENT ON COLUMN audit_trail.policy_revision IS 'revision of the bundle that decided';
COMMENT ON COLUMN audit_trail.risk IS 'risk that the policy gave: low, medium, high, critical, unknown';
COMMENT ON COLUMN audit_trail.decision IS 'allow, deny, require_approval, defer or modify; null where nothing was decided';
COMMENT ON COLUMN audit_trail.reason_code IS 'upper snake case reason of the decision';
COMMENT ON COLUMN audit_trail.matched_rules IS 'ids of every rule that matched, also those that lost';
COMMENT ON COLUMN audit_trail.decision_id IS 'the decision, as fabric policy explain takes it';
COMMENT ON COLUMN audit_trail.capability_id IS 'right under which the effect was carried out';
COMMENT ON COLUMN audit_trail.approval_id IS 'approval that was asked for or used';
COMMENT ON COLUMN audit_trail.plan_digest IS 'sha256: and hex over the frozen plan';
COMMENT ON COLUMN audit_trail.effect_id IS 'attempt at an effect';
COMMENT ON COLUMN audit_trail.receipt_id IS 'answer of the resource';
COMMENT ON COLUMN audit_trail.payload_ref IS 'vault:// reference of the raw payload; reading it needs a role and is itself audited';
COMMENT ON COLUMN audit_trail.summary IS 'the type''s own redacted summary; null when erased';
COMMENT ON COLUMN audit_trail.topic IS 'topic that the event was read from, prefix included';
COMMENT ON COLUMN audit_trail.partition IS 'partition of the topic';
COMMENT ON COLUMN audit_trail.kafka_offset IS 'offset in the partition';
COMMENT ON COLUMN audit_trail.erased IS 'whether content was erased; digests are kept';

CREATE VIEW decisions WITH (security_invoker = true) AS
  SELECT decision_id, tenant_id, recorded_at AS decided_at, decision, reason_code, risk, policy_revision, matched_rules,
    tool, action, resource_ref, data_class, user_id, agent_id, runtime_kind, session_id, turn_id, tool_call_id,
    correlation_id, plan_digest, capability_id, approval_id, summary ->> 'effect_class' AS effect_class, environment,
    event_id
  FROM audit.trail
  WHERE decision_id IS NOT NULL AND decision IS NOT NULL;

COMMENT ON VIEW decisions IS 'one row per published ruling of the gate';
COMMENT ON COLUMN decisions.decision_id IS 'the decision, as fabric policy explain takes it';
COMMENT ON COLUMN decisions.tenant_id IS 'tenant that the call belongs to';
COMMENT ON COLUMN decisions.decided_at IS 'when the gate decided';
COMMENT ON COLUMN decisions.decision IS 'allow, deny, require_approval, defer or modify';
COMMENT ON COLUMN decisions.reason_code IS 'upper snake case reason that leads';
COMMENT ON COLUMN decisions.risk IS 'risk that the policy gave';
COMMENT ON COLUMN decisions.policy_revision IS 'revision of the bundle that decided';
COMMENT ON COLUMN decisions.matched_rules IS 'ids of every rule that matched, also those that lost';
COMMENT ON COLUMN decisions.tool IS 'tool in the fabric''s words';
COMMENT ON COLUMN decisions.action IS 'what the tool was to do';
COMMENT ON COLUMN decisions.resource_ref IS 'what it was to be done to';
COMMENT ON COLUMN decisions.data_class IS 'class of the data';
COMMENT ON COLUMN decisions.user_id IS 'person on whose behalf';
COMMENT ON COLUMN decisions.agent_id IS 'agent that asked; null for the main agent';
COMMENT ON COLUMN decisions.runtime_kind IS 'adapter of the runtime';
COMMENT ON COLUMN decisions.session_id IS 'session of the runtime';
COMMENT ON COLUMN decisions.turn_id IS 'turn within the session';
COMMENT ON COLUMN decisions.tool_call_id IS 'call that was decided about';
COMMENT ON COLUMN decisions.correlation_id IS 'one goal of a user';
COMMENT ON COLUMN decisions.plan_digest IS 'sha256: and hex over the plan';
COMMENT ON COLUMN decisions.capability_id IS 'right that was issued with it';
COMMENT ON COLUMN decisions.approval_id IS 'approval that was asked for or used';
COMMENT ON COLUMN decisions.effect_class IS 'what the call does to the world: none, read, write, execute, network, spawn';
COMMENT ON COLUMN decisions.environment IS 'deployment environment of the agent';
COMMENT ON COLUMN decisions.event_id IS 'event that published the ruling';
