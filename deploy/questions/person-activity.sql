-- question: What did a person's agents do, and what were they refused?
-- param person text: the person, as user_id names them
-- param since timestamptz = '-infinity': from when, by the fabric's clock
-- param until timestamptz = 'infinity': up to when
-- param tenant text = '': one tenant; empty: every one that you may read
-- column day: UTC day
-- column sessions: sessions with a decision
-- column calls: decisions about tool calls
-- column allowed: those that passed
-- column denied: those that were refused
-- column held: those that wait for a person or a fact
-- column with_effects: those that passed and change something: write, execute, network, spawn
-- column risky: those of high or critical risk
SELECT (decided_at AT TIME ZONE 'UTC')::date::text AS day, count(DISTINCT session_id) AS sessions, count(*) AS calls,
  count(*) FILTER (WHERE decision IN ('allow', 'modify')) AS allowed, count(*) FILTER (WHERE decision = 'deny') AS denied,
  count(*) FILTER (WHERE decision IN ('require_approval', 'defer')) AS held,
  count(*) FILTER (WHERE decision IN ('allow', 'modify') AND effect_class IN ('write', 'execute', 'network', 'spawn', 'unknown'))
    AS with_effects,
  count(*) FILTER (WHERE risk IN ('high', 'critical')) AS risky
FROM analytics.decisions
WHERE user_id = :'person' AND decided_at >= (:'since')::timestamptz AND decided_at < (:'until')::timestamptz
  AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
GROUP BY 1
ORDER BY 1
