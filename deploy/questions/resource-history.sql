-- question: Who touched a resource, when, and was it let through?
-- param resource text: the resource, as resource_ref names it; % stands for any text
-- param since timestamptz = '-infinity': from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '100': at most so many rows, the newest first
-- column decided_at: when the gate decided
-- column tenant_id: tenant
-- column user_id: person on whose behalf
-- column agent_id: child agent that asked; null for the main agent
-- column tool: tool in the fabric's words
-- column action: what was to be done
-- column resource_ref: the resource
-- column effect_class: what the call does to the world
-- column decision: what the gate said
-- column reason_code: reason of it
-- column tool_call_id: the call
SELECT decided_at, tenant_id, user_id, agent_id, tool, action, resource_ref, effect_class, decision, reason_code,
  tool_call_id
FROM analytics.decisions
WHERE resource_ref LIKE :'resource' AND decided_at >= (:'since')::timestamptz AND decided_at < (:'until')::timestamptz
  AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
ORDER BY decided_at DESC, event_id
LIMIT (:'limit')::bigint
