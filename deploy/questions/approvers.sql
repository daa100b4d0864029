-- question: Who agrees to what agents want to do, how often do they refuse, and how fast are they?
-- param since timestamptz = '-infinity': asked for from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
-- param tenant text = '': one tenant; empty: every one that you may read
-- column tenant_id: tenant
-- column approver_id: person; null: nobody answered
-- column granted: approvals that were granted
-- column refused: approvals that were refused
-- column unused: granted, and never used
-- column median_wait_ms: half of the answers came within this time
-- column fast_share: share of the answers that came within 5 seconds; a high one is a rubber stamp
SELECT tenant_id, approver_id, count(*) FILTER (WHERE state IN ('granted', 'consumed')) AS granted,
  count(*) FILTER (WHERE state = 'refused') AS refused,
  count(*) FILTER (WHERE decided_at IS NOT NULL AND state <> 'refused' AND consumed_at IS NULL) AS unused,
  round(percentile_cont(0.5) WITHIN GROUP (ORDER BY waited_ms))::bigint AS median_wait_ms,
  round(avg((waited_ms <= 5000)::integer), 3) AS fast_share
FROM analytics.approvals
WHERE requested_at >= (:'since')::timestamptz AND requested_at < (:'until')::timestamptz
  AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
GROUP BY tenant_id, approver_id
ORDER BY tenant_id, granted DESC, approver_id
