-- question: What does the policy refuse, how often, and to how many people?
-- param since timestamptz = '-infinity': from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '20': at most so many rows
-- column reason_code: reason of the refusal
-- column tool: tool that was refused
-- column calls: refused calls
-- column people: different people whose agents asked
-- column sessions: different sessions
-- column last_at: the last one
SELECT reason_code, tool, count(*) AS calls, count(DISTINCT user_id) AS people,
  count(DISTINCT session_id) AS sessions, max(recorded_at) AS last_at
FROM analytics.audit_trail
WHERE event_type = 'agent.tool.denied' AND recorded_at >= (:'since')::timestamptz AND recorded_at < (:'until')::timestamptz
  AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
GROUP BY reason_code, tool
ORDER BY calls DESC, reason_code, tool
LIMIT (:'limit')::bigint
