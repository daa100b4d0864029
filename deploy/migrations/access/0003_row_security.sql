-- Which analyst reads which tenant. A row is decided by who logged in (session_user), never by a setting or by SET ROLE:
-- an analyst can change those.

CREATE TABLE analyst_tenants (
  role_name  name        NOT NULL,
  -- No reference: what a tenant left behind is still read when it is served no more.
  tenant_id  text        NOT NULL CHECK (tenant_id ~ '^[a-z0-9-]{1,64}$'),
  granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  granted_by text        NOT NULL DEFAULT session_user,
  PRIMARY KEY (role_name, tenant_id)
);

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Tenants of the person behind this connection. SECURITY DEFINER changes current_user, and leaves session_user alone.
CREATE FUNCTION reader_tenants() RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT coalesce(array_agg(g.tenant_id), '{}') FROM analyst_tenants AS g WHERE g.role_name = session_user
$$;
REVOKE ALL ON FUNCTION reader_tenants() FROM PUBLIC;

-- Services work for all tenants, by a policy of their own: whoever reads the table's definition sees which they are.
CREATE FUNCTION protect_from_analysts(one regclass, visible text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', one);
  EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', one);
  EXECUTE format('DROP POLICY IF EXISTS services_span_tenants ON %s', one);
  EXECUTE format('DROP POLICY IF EXISTS analysts_see_their_tenants ON %s', one);
  EXECUTE format(
    'CREATE POLICY services_span_tenants ON %s TO fabric_host, fabric_sealer, fabric_desk, fabric_exporter, fabric_auditor'
    ' USING (true) WITH CHECK (true)', one);
  EXECUTE format('CREATE POLICY analysts_see_their_tenants ON %s FOR SELECT TO fabric_analyst USING (%s)', one, visible);
END
$$;
REVOKE ALL ON FUNCTION protect_from_analysts(regclass, text) FROM PUBLIC;

-- For migrations: `SELECT access.protect('items', 'tenant_id')` after a table that a view of `analytics` reads. Without
-- it an integration test fails. The subselect runs once per query, not once per row.
CREATE FUNCTION protect(one regclass, tenant_column text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM protect_from_analysts(one, format('%I = ANY ((SELECT access.reader_tenants())::text[])', tenant_column));
END
$$;
REVOKE ALL ON FUNCTION protect(regclass, text) FROM PUBLIC;

-- For a table without a tenant of its own: its rows are seen with the row of `parent` that has the same key.
CREATE FUNCTION protect_by_parent(one regclass, parent regclass, key_column text) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM protect_from_analysts(one,
    format('EXISTS (SELECT FROM %s AS parent WHERE parent.%I = %s.%I)', parent, key_column, one, key_column));
END
$$;
REVOKE ALL ON FUNCTION protect_by_parent(regclass, regclass, text) FROM PUBLIC;
