-- question: Which clients were heard once, and are not any more?
-- param since timestamptz = '-infinity': heard last after this time
-- param silent_for interval = '1 day': nothing was heard for so long
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '100': at most so many rows
-- column tenant_id: tenant
-- column user_id: person whose token it showed
-- column runtime_kind: adapter of the runtime
-- column hooks: configuration hash of its hooks, or null where it told none
-- column last_seen_at: when a gate heard it last
-- column last_asked_at: when it asked last before an effect, or null where it only told
-- column other_seen_at: when another configuration of the same person and runtime was heard last: a newer installation, or another machine
SELECT c.tenant_id, c.user_id, c.runtime_kind, c.hooks, c.last_seen_at, c.last_asked_at, (
    SELECT max(o.last_seen_at) FROM analytics.clients AS o
    WHERE o.tenant_id = c.tenant_id AND o.user_id = c.user_id AND o.runtime_kind = c.runtime_kind
      AND o.hooks IS DISTINCT FROM c.hooks) AS other_seen_at
FROM analytics.clients AS c
WHERE c.last_seen_at >= (:'since')::timestamptz AND c.last_seen_at < now() - (:'silent_for')::interval
  AND c.tenant_id = coalesce(nullif(:'tenant', ''), c.tenant_id)
ORDER BY c.last_seen_at DESC, c.tenant_id, c.user_id, c.runtime_kind, c.hooks
LIMIT (:'limit')::bigint
