-- question: Which goals spread out most: child agents, calls, automation that started by itself?
-- param since timestamptz = '-infinity': from when, by the fabric's clock: what lies before is not counted
-- param until timestamptz = 'infinity': up to when
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '20': at most so many rows
-- column tenant_id: tenant
-- column correlation_id: the goal, as fabric trace takes it
-- column user_id: person who began it
-- column child_agents: child agents that took part
-- column tool_calls: tool calls that were asked for
-- column model_calls: model calls that ended
-- column max_automation_depth: most tasks that one chain of it has started by itself
-- column minutes: from its first counted event to the last
-- The view fan_out counts whole goals; here the span of time is applied below the grouping.
SELECT tenant_id, correlation_id, max(user_id) FILTER (WHERE event_type = 'agent.prompt.submitted') AS user_id,
  count(DISTINCT child) AS child_agents, count(*) FILTER (WHERE event_type = 'agent.tool.requested') AS tool_calls,
  count(*) FILTER (WHERE event_type = 'agent.model.completed') AS model_calls,
  max(automation_depth) AS max_automation_depth,
  round(extract(epoch FROM max(recorded_at) - min(recorded_at)) / 60, 1) AS minutes
FROM (
  SELECT tenant_id, correlation_id, user_id, event_type, automation_depth, recorded_at,
    CASE WHEN event_type LIKE 'agent.subagent.%' THEN summary ->> 'subagent_id' END AS child
  FROM analytics.audit_trail
  WHERE event_type IN ('agent.subagent.started', 'agent.subagent.stopped', 'agent.tool.requested', 'agent.model.completed',
      'agent.prompt.submitted')
    AND recorded_at >= (:'since')::timestamptz AND recorded_at < (:'until')::timestamptz
    AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
) AS e
GROUP BY tenant_id, correlation_id
ORDER BY child_agents DESC, tool_calls DESC, tenant_id, correlation_id
LIMIT (:'limit')::bigint
