-- Committed events on their way to Kafka. Rows live for milliseconds; the relay deletes them after the broker's ack.
-- The names id, aggregatetype, aggregateid, type and payload are those of Debezium's event router.

-- A SECURITY DEFINER function must not find a caller's temporary table first.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE events (
  seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id            uuid NOT NULL UNIQUE,
  aggregatetype varchar(249) NOT NULL,
  aggregateid   varchar(1024) NOT NULL,
  type          varchar(249) NOT NULL,
  payload       bytea NOT NULL,
  lane          smallint NOT NULL CHECK (lane BETWEEN 0 AND 1023),
  tenant_id     text NOT NULL,
  headers       jsonb NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (
  -- A queue: every row dies soon. Vacuum after a fixed number of dead rows, at full speed, whatever the table's size.
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 50000,
  toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 5000,
  toast.autovacuum_vacuum_cost_delay = 0
);
-- Avro does not shrink much, and a row that lives for milliseconds is not worth the compression.
ALTER TABLE events ALTER COLUMN payload SET STORAGE EXTERNAL;

-- Rows that the broker will never take, whole, with the reason. A person decides.
CREATE TABLE parked (
  seq           bigint PRIMARY KEY,
  id            uuid NOT NULL,
  aggregatetype varchar(249) NOT NULL,
  aggregateid   varchar(1024) NOT NULL,
  type          varchar(249) NOT NULL,
  payload       bytea NOT NULL,
  lane          smallint NOT NULL,
  tenant_id     text NOT NULL,
  headers       jsonb NOT NULL,
  created_at    timestamptz NOT NULL,
  code          text NOT NULL,
  reason        text NOT NULL,
  parked_by     text NOT NULL,
  parked_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Who publishes which lanes. Lane group = lane / 64. Only the database's clock counts.
CREATE TABLE lane_leases (
  lane_group smallint PRIMARY KEY CHECK (lane_group BETWEEN 0 AND 15),
  relay_id   text,
  epoch      bigint NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO lane_leases (lane_group) SELECT generate_series(0, 15);

CREATE TABLE relays (
  relay_id     text PRIMARY KEY,
  heartbeat_at timestamptz NOT NULL
);

-- The lane of an ordering key. hashtext() is what hash partitioning builds on: it does not change between versions.
CREATE FUNCTION lane_of(key text) RETURNS smallint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (hashtext(key) & 1023)::smallint;

-- The one way in. Call it once per transaction, as late as possible: two calls of two transactions may deadlock
-- (40P01, transient). Returns how many rows were new; an id that is still waiting here is not added twice.
--
-- Order of the three steps:
-- 1. the transaction id, before any serial number: settled_mark() depends on it;
-- 2. the lanes, sorted so that two writers never wait for each other, held to the commit: within a lane the serial
--    number is the commit order;
-- 3. the rows, whose serial numbers are drawn in the order of the arrays.
CREATE FUNCTION append(ids uuid[], types text[], keys text[], tenants text[], payloads bytea[], headers jsonb[])
  RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  one_lane smallint;
  added integer;
BEGIN
  PERFORM pg_current_xact_id();
  FOR one_lane IN SELECT DISTINCT lane_of(k) AS l FROM unnest(keys) AS k ORDER BY l LOOP
    -- 1869968498 = 'outb' in ASCII: the class of the lane locks.
    PERFORM pg_advisory_xact_lock(1869968498, one_lane);
  END LOOP;
  INSERT INTO events (id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers)
  SELECT r.id, r.type, r.key, r.type, r.payload, lane_of(r.key), r.tenant, r.headers
  FROM unnest(ids, types, keys, tenants, payloads, headers) WITH ORDINALITY
    AS r(id, type, key, tenant, payload, headers, position)
  ORDER BY r.position
  ON CONFLICT (id) DO NOTHING;
  GET DIAGNOSTICS added = ROW_COUNT;
  RETURN added;
END
$$;
REVOKE ALL ON FUNCTION append(uuid[], text[], text[], text[], bytea[], jsonb[]) FROM PUBLIC;

-- A pair from which the relay learns that old serial numbers are settled: the highest number drawn so far, then a new
-- transaction id. Whoever drew a number up to `drawn` has a smaller id (append() takes its id first), so when every
-- transaction below `xid` has ended, each row up to `drawn` is visible, deleted, or will never exist.
-- It has to be an own id: pg_snapshot_xmax() is one past the highest COMPLETED id, and a running writer may be above.
CREATE FUNCTION settled_mark(OUT drawn bigint, OUT xid xid8)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END INTO drawn FROM events_seq_seq AS s;
  xid := pg_current_xact_id();
END
$$;
REVOKE ALL ON FUNCTION settled_mark() FROM PUBLIC;
