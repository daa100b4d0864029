-- question: Which calls of high or critical risk passed, who agreed, and what does the resource say came of them?
-- param since timestamptz = '-infinity': decided from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '100': at most so many rows, the newest first
-- column tenant_id: tenant
-- column decided_at: when the gate let it pass
-- column user_id: person on whose behalf
-- column tool: tool in the fabric's words
-- column resource_ref: what it was done to
-- column risk: risk that the policy gave
-- column approver_id: person who agreed; null: nobody had to
-- column outcome: what the resource says, or else the runtime; null: not known
-- column tool_call_id: the call
SELECT d.tenant_id, d.decided_at, d.user_id, d.tool, d.resource_ref, d.risk, s.approver_id,
  coalesce(s.receipt_outcome, s.outcome) AS outcome, d.tool_call_id
FROM (
  SELECT * FROM analytics.decisions
  WHERE risk IN ('high', 'critical') AND decision IN ('allow', 'modify') AND decided_at >= (:'since')::timestamptz
    AND decided_at < (:'until')::timestamptz AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
  ORDER BY decided_at DESC, event_id LIMIT (:'limit')::bigint
) AS d
-- OFFSET 0: the story of each of these calls is looked up by its id, instead of that of every call being told first.
LEFT JOIN LATERAL (
  SELECT s.approver_id, s.receipt_outcome, s.outcome FROM analytics.story AS s
  WHERE s.tool_call_id = d.tool_call_id AND s.tenant_id = d.tenant_id AND s.session_id IS NOT DISTINCT FROM d.session_id
  OFFSET 0
) AS s ON true
ORDER BY d.decided_at DESC, d.event_id
