-- question: How long do agents wait: for the gate, for people, for tools?
-- param since timestamptz = '-infinity': asked from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
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
FROM analytics.latency
WHERE requested_at >= (:'since')::timestamptz AND requested_at < (:'until')::timestamptz
  AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
GROUP BY tool
ORDER BY calls DESC, tool
