-- A plan that is revoked between a decision's facts and its commit: a revocation raises its tenant's version, as a freeze
-- does. It waits for the commits that did not see it, and each later one decides again with the revocation among its facts.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- With its owner's right: the gate may not change a tenant, and by this it can only raise the version.
CREATE FUNCTION raise_tenant_version() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  -- Before the row is written, as tenants come first in the order of locks.
  UPDATE access.tenants SET changed_at = clock_timestamp() WHERE tenant_id = NEW.tenant_id;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION raise_tenant_version() FROM PUBLIC;
CREATE TRIGGER raise_tenant_version BEFORE INSERT ON revoked_plans
  FOR EACH ROW EXECUTE FUNCTION raise_tenant_version();
