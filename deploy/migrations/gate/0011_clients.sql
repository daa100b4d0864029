-- Clients that came to a gate, and when last: whoever was heard and falls silent is seen here. One row per person, runtime and
-- configuration of the hooks, as the running client says it.

CREATE TABLE clients (
  tenant_id     text        COLLATE "C" NOT NULL,
  -- The token's subject.
  user_id       text        COLLATE "C" NOT NULL,
  runtime       text        COLLATE "C" NOT NULL,
  -- Digest of the installation; empty: the client told none.
  hooks         text        COLLATE "C" NOT NULL,
  first_seen_at timestamptz NOT NULL,
  last_seen_at  timestamptz NOT NULL,
  -- Before an effect; null: it only ever told.
  last_asked_at timestamptz,
  PRIMARY KEY (tenant_id, user_id, runtime, hooks)
);
CREATE INDEX clients_forgotten ON clients (last_seen_at);
SELECT access.protect('clients', 'tenant_id');
-- The gate writes it, for all tenants.
ALTER POLICY services_span_tenants ON clients
  TO fabric_host, fabric_sealer, fabric_desk, fabric_exporter, fabric_auditor, fabric_gate;
