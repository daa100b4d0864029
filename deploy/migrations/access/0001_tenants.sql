-- Who is served here. The gate reads a tenant's state with every decision, and its version again at commit.

CREATE TABLE tenants (
  tenant_id  text PRIMARY KEY CHECK (tenant_id ~ '^[a-z0-9-]{1,64}$'),
  state      text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'frozen')),
  -- Raised by every change: a decision that read another version is made again.
  version    bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION raise_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := OLD.version + 1;
  NEW.changed_at := clock_timestamp();
  RETURN NEW;
END
$$;
CREATE TRIGGER raise_version BEFORE UPDATE ON tenants FOR EACH ROW EXECUTE FUNCTION raise_version();

-- The tenant of the fabric's own records.
INSERT INTO tenants (tenant_id) VALUES ('fabric');

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Reads versions and holds them to the end of the caller's transaction: a freeze waits for the commits that did not
-- see it, and a commit that comes after the freeze reads the new version. A function, so that the caller needs no
-- right to change a tenant (FOR SHARE asks for one).
CREATE FUNCTION hold_tenants(ids text[]) RETURNS TABLE (tenant_id text, version bigint)
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT t.tenant_id, t.version FROM tenants AS t WHERE t.tenant_id = ANY (ids) ORDER BY t.tenant_id FOR SHARE
$$;
REVOKE ALL ON FUNCTION hold_tenants(text[]) FROM PUBLIC;
