-- Which clients were heard, and when last.

CREATE VIEW clients WITH (security_invoker = true) AS
  SELECT tenant_id, user_id, runtime AS runtime_kind, nullif(hooks, '') AS hooks, first_seen_at, last_seen_at, last_asked_at
  FROM gate.clients;

COMMENT ON VIEW clients IS 'one row per person, runtime and configuration of the hooks: when the client was heard last';
COMMENT ON COLUMN clients.tenant_id IS 'tenant that the client belongs to';
COMMENT ON COLUMN clients.user_id IS 'person whose token it shows';
COMMENT ON COLUMN clients.runtime_kind IS 'adapter of the runtime';
COMMENT ON COLUMN clients.hooks IS 'configuration hash of the hooks, as fabric doctor shows it; null: the client told none';
COMMENT ON COLUMN clients.first_seen_at IS 'when a gate heard it first';
COMMENT ON COLUMN clients.last_seen_at IS 'when a gate heard it last, to half a minute; a year later it is forgotten';
COMMENT ON COLUMN clients.last_asked_at IS 'when it asked last before an effect; null: it only ever told what happened';
