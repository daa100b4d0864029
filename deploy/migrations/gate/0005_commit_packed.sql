-- The function that writes a group, with half as many parameters and no unnested tables: the columns of one type of a
-- table come in one array, row after row, and are read out of it by position. A small group costs the server a third
-- less for it. What it promises is the same.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

DROP FUNCTION commit_group;

-- Writes a group, or nothing of it. Call it in a statement of its own, without BEGIN. With the caller's rights: it gives
-- nobody more than he has. It raises
--   FGC01  something does not hold any more; DETAIL is {"tenants": [...], "sessions": [...], "calls": [...]}: tenants
--          and sessions whose version moved, ids of decisions and keys of recorded calls that another commit took;
--   FGB01  a caller is told no by now: it took longer than budget_ms, or it is later than until_ms by this server's
--          clock (milliseconds since 1970), which counts the way here too;
--   55P03  a lock was not free within that time.
-- Locks are taken in one order by everybody: new sessions, tenants, sessions, what `more` names, calls, anchors, lanes,
-- each sorted.
--
-- Columns of the packed arrays, in this order:
--   s_uuid  session_key, correlation_id          s_text  tenant_id, runtime, session_id
--   d_uuid  decision_id, session_key, correlation_id, call_key, requested_event_id
--   d_text  tenant_id, runtime, phase, tool, effect_class, decision, reason_code, plan_digest, matched_rules (an array's
--           literal), request_ref, payload_ref
--   d_json  request, facts, answer               d_sealed  request_sealed
--   a_uuid  anchor_key, session_key, event_id    a_text  tenant_id
--   c_uuid  capability_id, decision_id, session_key
--   c_text  tenant_id, tool, resource, plan_digest, expires_at
--   e_text  tenant_id, data_class                e_bytes  digest, nonce, tag, sealed       e_number  key_version, size_bytes
CREATE FUNCTION commit_group(
  budget_ms double precision, until_ms double precision, happened_at timestamptz, revision text,
  s_uuid uuid[], s_text text[],
  held_tenant text[], held_tenant_version bigint[], held_session uuid[], held_session_version bigint[],
  d_uuid uuid[], d_text text[], d_json jsonb[], d_sealed bytea[],
  h_call uuid[], h_tenant text[],
  a_uuid uuid[], a_text text[],
  c_uuid uuid[], c_text text[], c_constraints jsonb[], c_max_calls integer[],
  e_id uuid[], e_text text[], e_bytes bytea[], e_number integer[],
  o_id uuid[], o_type text[], o_key text[], o_tenant text[], o_payload bytea[], o_headers jsonb[],
  more jsonb
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  ignored text;
  moved_tenants text[];
  moved_sessions uuid[];
  taken uuid[];
  taken_hooks uuid[];
  added integer;
BEGIN
  -- Who waits for a lock longer than its caller waits for an answer, waits for nothing.
  ignored := set_config('lock_timeout', greatest(1, ceil(budget_ms))::integer::text, true);
  -- Plans that fit every group: a group's own would be made anew each time, and come out the same.
  ignored := set_config('plan_cache_mode', 'force_generic_plan', true);

  IF cardinality(s_uuid) > 0 THEN
    INSERT INTO gate.sessions (session_key, correlation_id, tenant_id, runtime, session_id, first_seen_at)
    SELECT s_uuid[2 * i + 1], s_uuid[2 * i + 2], s_text[3 * i + 1], s_text[3 * i + 2], s_text[3 * i + 3], happened_at
    FROM generate_series(0, cardinality(s_uuid) / 2 - 1) AS i
    ON CONFLICT DO NOTHING;
  END IF;

  IF cardinality(held_tenant) > 0 THEN
    SELECT array_agg(w.id) INTO moved_tenants
    FROM unnest(held_tenant, held_tenant_version) AS w(id, version)
    LEFT JOIN access.hold_tenants(held_tenant) AS h ON h.tenant_id = w.id
    WHERE h.version IS DISTINCT FROM w.version;
  END IF;
  IF cardinality(held_session) > 0 THEN
    PERFORM pg_advisory_xact_lock_shared(1936028531, l.hash)
    FROM (SELECT DISTINCT uuid_hash(k) AS hash FROM unnest(held_session) AS k ORDER BY 1) AS l;
    -- A statement of its own, and so a snapshot of its own: what was committed while we waited is seen.
    SELECT array_agg(w.key) INTO moved_sessions
    FROM unnest(held_session, held_session_version) AS w(key, version)
    LEFT JOIN gate.sessions AS s ON s.session_key = w.key
    WHERE s.version IS DISTINCT FROM w.version;
  END IF;

  IF moved_tenants IS NULL AND moved_sessions IS NULL THEN
    IF more IS NOT NULL THEN
      PERFORM gate.apply_consequences(more);
    END IF;
    IF cardinality(d_uuid) > 0 THEN
      INSERT INTO gate.decisions (decision_id, session_key, correlation_id, call_key, requested_event_id, tenant_id,
        runtime, phase, tool, effect_class, decision, reason_code, plan_digest, matched_rules, request_ref, payload_ref,
        request, facts, answer, request_sealed, policy_revision, decided_at)
      SELECT d_uuid[5 * i + 1], d_uuid[5 * i + 2], d_uuid[5 * i + 3], d_uuid[5 * i + 4], d_uuid[5 * i + 5],
        d_text[11 * i + 1], d_text[11 * i + 2], d_text[11 * i + 3], d_text[11 * i + 4], d_text[11 * i + 5],
        d_text[11 * i + 6], d_text[11 * i + 7], d_text[11 * i + 8], d_text[11 * i + 9]::text[], d_text[11 * i + 10],
        d_text[11 * i + 11], d_json[3 * i + 1], d_json[3 * i + 2], d_json[3 * i + 3], d_sealed[i + 1], revision,
        happened_at
      FROM generate_series(0, cardinality(d_uuid) / 5 - 1) AS i
      ON CONFLICT (call_key) WHERE call_key IS NOT NULL DO NOTHING;
      GET DIAGNOSTICS added = ROW_COUNT;
      IF added < cardinality(d_uuid) / 5 THEN
        SELECT array_agg(d_uuid[5 * i + 1]) INTO taken FROM generate_series(0, cardinality(d_uuid) / 5 - 1) AS i
        WHERE NOT EXISTS (SELECT FROM gate.decisions AS d WHERE d.decision_id = d_uuid[5 * i + 1]);
      END IF;
    END IF;
    IF cardinality(h_call) > 0 THEN
      WITH called AS (
        INSERT INTO gate.hook_calls (call_key, tenant_id, recorded_at)
        SELECT r.*, happened_at FROM unnest(h_call, h_tenant) AS r
        ON CONFLICT DO NOTHING RETURNING call_key)
      SELECT array_agg(k) INTO taken_hooks FROM unnest(h_call) AS k
      WHERE NOT EXISTS (SELECT FROM called AS c WHERE c.call_key = k);
    END IF;
  END IF;
  IF moved_tenants IS NOT NULL OR moved_sessions IS NOT NULL OR taken IS NOT NULL OR taken_hooks IS NOT NULL THEN
    RAISE EXCEPTION 'the group does not hold any more' USING ERRCODE = 'FGC01', DETAIL = json_build_object(
      'tenants', coalesce(moved_tenants, '{}'), 'sessions', coalesce(moved_sessions, '{}'),
      'calls', coalesce(taken, '{}') || coalesce(taken_hooks, '{}'))::text;
  END IF;

  IF cardinality(a_uuid) > 0 THEN
    INSERT INTO gate.anchors (anchor_key, session_key, event_id, tenant_id, recorded_at)
    SELECT a_uuid[3 * i + 1], a_uuid[3 * i + 2], a_uuid[3 * i + 3], a_text[i + 1], happened_at
    FROM generate_series(0, cardinality(a_uuid) / 3 - 1) AS i
    ON CONFLICT (anchor_key) DO UPDATE SET event_id = excluded.event_id, recorded_at = excluded.recorded_at;
  END IF;
  IF cardinality(c_uuid) > 0 THEN
    INSERT INTO gate.capabilities (capability_id, decision_id, session_key, tenant_id, tool, resource, plan_digest,
      expires_at, constraints, max_calls, policy_revision, issued_at)
    SELECT c_uuid[3 * i + 1], c_uuid[3 * i + 2], c_uuid[3 * i + 3], c_text[5 * i + 1], c_text[5 * i + 2],
      c_text[5 * i + 3], c_text[5 * i + 4], c_text[5 * i + 5]::timestamptz, c_constraints[i + 1], c_max_calls[i + 1],
      revision, happened_at
    FROM generate_series(0, cardinality(c_uuid) / 3 - 1) AS i;
  END IF;
  IF cardinality(e_id) > 0 THEN
    INSERT INTO vault.evidence (evidence_id, tenant_id, data_class, digest, nonce, tag, sealed, key_version, size_bytes)
    SELECT e_id[i + 1], e_text[2 * i + 1], e_text[2 * i + 2], e_bytes[4 * i + 1], e_bytes[4 * i + 2],
      e_bytes[4 * i + 3], e_bytes[4 * i + 4], e_number[2 * i + 1], e_number[2 * i + 2]
    FROM generate_series(0, cardinality(e_id) - 1) AS i;
  END IF;
  PERFORM outbox.append_fresh(o_id, o_type, o_key, o_tenant, o_payload, o_headers);

  IF extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000 > budget_ms
    OR extract(epoch FROM clock_timestamp()) * 1000 > until_ms THEN
    RAISE EXCEPTION 'a caller is told no by now' USING ERRCODE = 'FGB01';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION commit_group FROM PUBLIC;
