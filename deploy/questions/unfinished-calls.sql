-- question: Which calls were allowed, and nobody told how they ended?
-- param since timestamptz = '-infinity': allowed from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
-- param older_than interval = '1 hour': allowed at least so long ago; what is younger may still run
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '100': at most so many rows
-- column tenant_id: tenant
-- column allowed_at: when it was allowed last
-- column user_id: person on whose behalf
-- column runtime_kind: adapter of the runtime
-- column session_id: session of the runtime
-- column tool_call_id: the call
-- column tool: tool in the fabric's words
-- column action: what it was to do
-- column resource_ref: what it was to be done to
-- column session_ended_at: when its session ended; null: it was killed, or goes on
SELECT o.tenant_id, o.allowed_at, o.user_id, o.runtime_kind, o.session_id, o.tool_call_id, o.tool, o.action,
  o.resource_ref, (
    SELECT max(e.recorded_at) FROM analytics.audit_trail AS e
    WHERE e.event_type = 'agent.session.ended' AND e.tenant_id = o.tenant_id AND e.session_id = o.session_id
      AND e.recorded_at >= o.allowed_at) AS session_ended_at
FROM (
  SELECT d.tenant_id, max(d.recorded_at) AS allowed_at, max(d.user_id) AS user_id, max(d.runtime_kind) AS runtime_kind,
    d.session_id, d.tool_call_id, max(d.tool) AS tool, max(d.action) AS action, max(d.resource_ref) AS resource_ref
  FROM analytics.audit_trail AS d
  WHERE d.event_type = 'agent.tool.authorized' AND d.tool_call_id IS NOT NULL
    AND d.recorded_at >= (:'since')::timestamptz
    AND d.recorded_at < least((:'until')::timestamptz, now() - (:'older_than')::interval)
    AND d.tenant_id = coalesce(nullif(:'tenant', ''), d.tenant_id)
    AND NOT EXISTS (
      SELECT FROM analytics.audit_trail AS c
      -- What the runtime itself, or its user, refused has come to its end too.
      WHERE c.event_type IN ('agent.tool.completed', 'agent.permission.refused') AND c.tool_call_id = d.tool_call_id AND c.tenant_id = d.tenant_id
        AND c.session_id IS NOT DISTINCT FROM d.session_id)
  GROUP BY d.tenant_id, d.session_id, d.tool_call_id
  ORDER BY allowed_at DESC, d.tenant_id, d.session_id, d.tool_call_id
  LIMIT (:'limit')::bigint) AS o
ORDER BY o.allowed_at DESC, o.tenant_id, o.session_id, o.tool_call_id
