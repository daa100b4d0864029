-- question: Which calls ended well although no decision had allowed them?
-- param since timestamptz = '-infinity': ended from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '100': at most so many rows
-- column tenant_id: tenant
-- column completed_at: when the result was recorded
-- column user_id: person on whose behalf
-- column runtime_kind: adapter of the runtime
-- column session_id: session of the runtime
-- column tool_call_id: the call
-- column tool: tool in the fabric's words
-- column last_decision: last decision about it, or null where there was none
SELECT DISTINCT ON (c.recorded_at, c.tenant_id, c.session_id, c.tool_call_id) c.tenant_id, c.recorded_at AS completed_at,
  c.user_id, c.runtime_kind, c.session_id, c.tool_call_id, c.tool, (
    SELECT d.decision FROM analytics.decisions AS d
    WHERE d.tool_call_id = c.tool_call_id AND d.tenant_id = c.tenant_id AND d.session_id IS NOT DISTINCT FROM c.session_id
    ORDER BY d.decided_at DESC, d.event_id DESC LIMIT 1) AS last_decision
FROM analytics.audit_trail AS c
WHERE c.event_type = 'agent.tool.completed' AND c.recorded_at >= (:'since')::timestamptz
  AND c.recorded_at < (:'until')::timestamptz AND c.tenant_id = coalesce(nullif(:'tenant', ''), c.tenant_id)
  AND c.summary ->> 'outcome' IN ('succeeded', 'failed', 'interrupted')
  AND NOT EXISTS (
    SELECT FROM analytics.decisions AS d
    WHERE d.tool_call_id = c.tool_call_id AND d.tenant_id = c.tenant_id AND d.decision IN ('allow', 'modify')
      AND d.session_id IS NOT DISTINCT FROM c.session_id)
ORDER BY c.recorded_at, c.tenant_id, c.session_id, c.tool_call_id
LIMIT (:'limit')::bigint
