-- question: Who was behind a tool call, which rules spoke, who agreed to it, and how did it end?
-- param call text: the runtime's id of the call
-- param tenant text = '': one tenant; empty: every one that you may read
-- column tenant_id: tenant that the call belongs to
-- column user_id: person on whose behalf
-- column agent_id: child agent that asked; null for the main agent
-- column runtime_kind: adapter of the runtime
-- column session_id: session of the runtime; some runtimes number calls per session, so there may be several rows
-- column hook_event_id: event that the runtime's hook became
-- column tool: tool in the fabric's words
-- column resource_ref: what it was to be done to
-- column decision: last decision
-- column reason_code: reason of it
-- column matched_rules: every rule that matched
-- column policy_revision: revision that decided
-- column approver_id: person who agreed; null: nobody had to, or nobody did
-- column approval_id: what that person agreed to
-- column approval_consumed_at: when the call used the approval up
-- column capability_id: right that was issued
-- column capability_spent_at: when the right was first used
-- column capability_calls_used: how often it was used
-- column receipt_id: what the resource answered with
-- column receipt_outcome: what the resource says came of it
-- column final_state: how it ended
SELECT tenant_id, user_id, agent_id, runtime_kind, session_id, hook_event_id, tool, resource_ref, decision, reason_code,
  matched_rules, policy_revision, approver_id, approval_id, approval_consumed_at, capability_id, capability_spent_at,
  capability_calls_used, receipt_id, receipt_outcome, final_state
FROM analytics.story
WHERE tool_call_id = :'call' AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
ORDER BY requested_at, session_id
