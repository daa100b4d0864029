-- The same order of steps and the same promises as before, for less of the server's time: all lanes are taken by one
-- statement, and rows are read out of the arrays by position instead of through a table of unnested columns.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION append(ids uuid[], types text[], keys text[], tenants text[], payloads bytea[], headers jsonb[])
  RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  added integer;
BEGIN
  PERFORM pg_current_xact_id();
  -- 1869968498 = 'outb' in ASCII: the class of the lane locks. In one order, so that two writers never wait for each other.
  PERFORM pg_advisory_xact_lock(1869968498, l.lane)
  FROM (SELECT DISTINCT lane_of(k)::integer AS lane FROM unnest(keys) AS k ORDER BY 1) AS l;
  INSERT INTO events (id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers)
  SELECT ids[i], types[i], keys[i], types[i], payloads[i], lane_of(keys[i]), tenants[i], headers[i]
  FROM generate_series(1, cardinality(ids)) AS i
  ON CONFLICT (id) DO NOTHING;
  GET DIAGNOSTICS added = ROW_COUNT;
  RETURN added;
END
$$;
REVOKE ALL ON FUNCTION append(uuid[], text[], text[], text[], bytea[], jsonb[]) FROM PUBLIC;

-- For ids that the caller has just made up, and that nobody can have appended before: one that is there already is an
-- error here, not a repetition. Looking for it with every row is a fifth of what appending costs.
CREATE FUNCTION append_fresh(ids uuid[], types text[], keys text[], tenants text[], payloads bytea[], headers jsonb[])
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM pg_current_xact_id();
  PERFORM pg_advisory_xact_lock(1869968498, l.lane)
  FROM (SELECT DISTINCT lane_of(k)::integer AS lane FROM unnest(keys) AS k ORDER BY 1) AS l;
  INSERT INTO events (id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers)
  SELECT ids[i], types[i], keys[i], types[i], payloads[i], lane_of(keys[i]), tenants[i], headers[i]
  FROM generate_series(1, cardinality(ids)) AS i;
END
$$;
REVOKE ALL ON FUNCTION append_fresh(uuid[], text[], text[], text[], bytea[], jsonb[]) FROM PUBLIC;
