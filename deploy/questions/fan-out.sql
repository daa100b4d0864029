-- question: Which goals spread out most: child agents, calls, automation that started by itself?
-- param since timestamptz = '-infinity': begun from when, by the fabric's clock
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
-- column minutes: from its first event to the last
SELECT tenant_id, correlation_id, user_id, child_agents, tool_calls, model_calls, max_automation_depth,
  round(extract(epoch FROM last_at - first_at) / 60, 1) AS minutes
FROM analytics.fan_out
WHERE first_at >= (:'since')::timestamptz AND first_at < (:'until')::timestamptz
  AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
ORDER BY child_agents DESC, tool_calls DESC, tenant_id, correlation_id
LIMIT (:'limit')::bigint
