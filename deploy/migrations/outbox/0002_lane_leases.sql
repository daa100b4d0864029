SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- One heartbeat of a relay: renews what it holds, takes free and expired groups up to its fair share, and says what it
-- holds and what the share is. It never takes what another holds: surplus is given back by its holder, once nothing of
-- it is in flight. All times are this server's.
CREATE FUNCTION renew_lanes(relay text, lease_ms integer, OUT lane_groups smallint[], OUT share integer)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  until timestamptz := clock_timestamp() + lease_ms * interval '1 millisecond';
BEGIN
  INSERT INTO relays (relay_id, heartbeat_at) VALUES (relay, clock_timestamp())
    ON CONFLICT (relay_id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at;
  -- SKIP LOCKED: a relay that wakes up late may be writing its own row.
  DELETE FROM relays WHERE relay_id IN (
    SELECT r.relay_id FROM relays r
    WHERE r.heartbeat_at < clock_timestamp() - lease_ms * interval '2 milliseconds' FOR UPDATE SKIP LOCKED);
  SELECT ceil(16.0 / count(*)) INTO share FROM relays r
    WHERE r.heartbeat_at > clock_timestamp() - lease_ms * interval '1 millisecond';
  UPDATE lane_leases l SET expires_at = until WHERE l.relay_id = relay;
  UPDATE lane_leases l SET relay_id = relay, expires_at = until, epoch = l.epoch + 1
    WHERE l.lane_group IN (
      SELECT f.lane_group FROM lane_leases f
      WHERE f.relay_id IS DISTINCT FROM relay AND f.expires_at <= clock_timestamp()
      ORDER BY f.lane_group
      LIMIT greatest(share - (SELECT count(*) FROM lane_leases m WHERE m.relay_id = relay), 0)
      FOR UPDATE SKIP LOCKED);
  SELECT coalesce(array_agg(l.lane_group ORDER BY l.lane_group), '{}') INTO lane_groups
    FROM lane_leases l WHERE l.relay_id = relay;
END
$$;
REVOKE ALL ON FUNCTION renew_lanes(text, integer) FROM PUBLIC;

-- Gives groups back; null gives back all and signs the relay off.
CREATE FUNCTION release_lanes(relay text, groups smallint[]) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  UPDATE lane_leases SET relay_id = NULL, expires_at = '-infinity'
    WHERE relay_id = relay AND (groups IS NULL OR lane_group = ANY (groups));
  DELETE FROM relays WHERE relay_id = relay AND groups IS NULL;
$$;
REVOKE ALL ON FUNCTION release_lanes(text, smallint[]) FROM PUBLIC;
