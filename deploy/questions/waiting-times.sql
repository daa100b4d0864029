-- question: How long do agents wait: for the gate, for people, for tools?
-- param since timestamptz = '-infinity': asked from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when; results that come up to a day later count too
-- param tenant text = '': one tenant; empty: every one that you may read
-- column tool: tool in the fabric's words
-- column calls: calls that were asked for
-- column decide_p50_ms: half of the decisions took no longer than this
-- column decide_p99_ms: all but one in a hundred
-- column tool_p50_ms: half of the tools' runs took no longer than this, as the runtime told
-- column tool_p99_ms: all but one in a hundred
-- column total_p50_ms: from the request to the result, half of them
-- column total_p99_ms: all but one in a hundred
SELECT tool, count(*) AS calls, round(percentile_cont(0.5) WITHIN GROUP (ORDER BY decide_ms))::bigint AS decide_p50_ms,
  round(percentile_cont(0.99) WITHIN GROUP (ORDER BY decide_ms))::bigint AS decide_p99_ms,
  round(percentile_cont(0.5) WITHIN GROUP (ORDER BY tool_ms))::bigint AS tool_p50_ms,
  round(percentile_cont(0.99) WITHIN GROUP (ORDER BY tool_ms))::bigint AS tool_p99_ms,
  round(percentile_cont(0.5) WITHIN GROUP (ORDER BY total_ms))::bigint AS total_p50_ms,
  round(percentile_cont(0.99) WITHIN GROUP (ORDER BY total_ms))::bigint AS total_p99_ms
-- The view latency has the same columns; the span of time can only be applied here, below its grouping.
FROM (
  SELECT max(tool) AS tool, extract(epoch FROM min(decided) - min(requested)) * 1000 AS decide_ms, max(tool_ms) AS tool_ms,
    extract(epoch FROM max(completed) - min(requested)) * 1000 AS total_ms
  FROM (
    SELECT tenant_id, session_id, tool_call_id, tool,
      CASE WHEN event_type = 'agent.tool.requested' THEN recorded_at END AS requested,
      CASE WHEN decision_id IS NOT NULL AND decision IS NOT NULL THEN recorded_at END AS decided,
      CASE WHEN event_type = 'agent.tool.completed' THEN recorded_at END AS completed,
      CASE WHEN event_type = 'agent.tool.completed' THEN (summary ->> 'duration_ms')::bigint END AS tool_ms
    FROM analytics.audit_trail
    WHERE tool_call_id IS NOT NULL AND event_type IN ('agent.tool.requested', 'agent.tool.authorized', 'agent.tool.denied',
        'agent.tool.deferred', 'agent.approval.requested', 'agent.tool.completed')
      AND recorded_at >= (:'since')::timestamptz AND recorded_at < (:'until')::timestamptz + interval '1 day'
      AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
  ) AS e
  GROUP BY tenant_id, session_id, tool_call_id
  HAVING min(requested) >= (:'since')::timestamptz AND min(requested) < (:'until')::timestamptz
) AS calls
GROUP BY tool
ORDER BY calls DESC, tool
