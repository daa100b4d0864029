-- What is held back, by the breaker or by a person: the state that gates read. It is the truth, and events tell of it; a
-- projection that is built again changes nothing here, and it holds while Kafka is away.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE holds (
  hold_id     uuid        PRIMARY KEY,
  source      text        NOT NULL CHECK (source IN ('breaker', 'incident')),
  -- read_only: no new effect. frozen: nothing at all.
  mode        text        NOT NULL CHECK (mode IN ('read_only', 'frozen')),
  -- '*': every tenant.
  tenant_id   text        COLLATE "C" NOT NULL,
  scope       text        NOT NULL CHECK (scope IN ('all', 'tenant', 'correlation', 'session', 'agent', 'user', 'tool')),
  scope_id    text        COLLATE "C" NOT NULL,
  kind        text        NOT NULL,
  reason      text        NOT NULL,
  evidence    jsonb       NOT NULL DEFAULT '{}',
  declared_by text        NOT NULL,
  declared_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: only a person ends it.
  until       timestamptz,
  lifted_at   timestamptz,
  lifted_by   text,
  lift_reason text,
  CHECK ((scope = 'all') = (tenant_id = '*')),
  CHECK ((lifted_at IS NULL) = (lifted_by IS NULL))
);
CREATE INDEX holds_open ON holds (tenant_id, scope, scope_id) WHERE lifted_at IS NULL;
CREATE INDEX holds_recent ON holds (tenant_id, declared_at);
-- One alarm, one reset: what is read-only already does not trip again.
CREATE UNIQUE INDEX holds_one_trip ON holds (tenant_id, scope, scope_id) WHERE source = 'breaker' AND lifted_at IS NULL;

-- A hold raises the version of its tenants, as a freeze does: it waits for the decisions and uses that did not see it, and
-- each later one is made with it. With its owner's right: who writes a hold may not change a tenant, and by this can only
-- raise the version. In the order in which `access.hold_tenants` locks, so that nobody waits in a circle.
CREATE FUNCTION raise_tenant_versions() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  one text;
BEGIN
  FOR one IN SELECT t.tenant_id FROM access.tenants AS t
    WHERE NEW.tenant_id = '*' OR t.tenant_id = NEW.tenant_id ORDER BY hashtext(t.tenant_id)
  LOOP
    UPDATE access.tenants SET changed_at = clock_timestamp() WHERE tenant_id = one;
  END LOOP;
  PERFORM pg_notify('holds', NEW.tenant_id);
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION raise_tenant_versions() FROM PUBLIC;
CREATE TRIGGER raise_tenant_versions BEFORE INSERT OR UPDATE ON holds
  FOR EACH ROW EXECUTE FUNCTION raise_tenant_versions();

-- For the trigger of the breaker's own table, which runs with its owner's right; nobody else may call it.
CREATE FUNCTION hold_trip(id uuid, of_tenant text, of_scope text, of_scope_id text, what text, why text, shown jsonb,
  ends_at timestamptz) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  -- One that ended by its time is in no later one's way.
  UPDATE holds SET lifted_at = until, lifted_by = 'time'
  WHERE tenant_id = of_tenant AND scope = of_scope AND scope_id = of_scope_id AND source = 'breaker'
    AND lifted_at IS NULL AND until <= clock_timestamp();
  INSERT INTO holds (hold_id, source, mode, tenant_id, scope, scope_id, kind, reason, evidence, declared_by, until)
  VALUES (id, 'breaker', 'read_only', of_tenant, of_scope, of_scope_id, what, why, shown, 'breaker', ends_at)
  ON CONFLICT DO NOTHING;
END
$$;
REVOKE ALL ON FUNCTION hold_trip(uuid, text, text, text, text, text, jsonb, timestamptz) FROM PUBLIC;
