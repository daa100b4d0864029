-- A change of a tenant must not wait for ever behind decisions. Row locks are not fair: as long as one transaction
-- after the other holds a row FOR SHARE, and each new one joins at once, an UPDATE of that row starves. Advisory locks
-- queue: whoever comes after the waiting change waits for it, and then reads the new version. They write no row either.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION hold_tenants(ids text[]) RETURNS TABLE (tenant_id text, version bigint)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
#variable_conflict use_column
DECLARE
  one_hash integer;
BEGIN
  -- 1952804449 = 'tena' in ASCII: the class of these locks. In one order, so that two never wait for each other.
  FOR one_hash IN SELECT DISTINCT hashtext(id) AS h FROM unnest(ids) AS id ORDER BY h LOOP
    PERFORM pg_advisory_xact_lock_shared(1952804449, one_hash);
  END LOOP;
  -- A statement of its own, and so a snapshot of its own: what was committed while we waited is seen.
  RETURN QUERY SELECT t.tenant_id, t.version FROM tenants AS t WHERE t.tenant_id = ANY (ids);
END
$$;
REVOKE ALL ON FUNCTION hold_tenants(text[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION raise_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Waits for the commits that did not see this change, and lets no later one pass.
  PERFORM pg_advisory_xact_lock(1952804449, hashtext(OLD.tenant_id));
  NEW.version := OLD.version + 1;
  NEW.changed_at := clock_timestamp();
  RETURN NEW;
END
$$;
