-- A group of decisions and records in one statement, so that a commit is one round trip and holds its locks no longer
-- than the server needs.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- A change of a session waits for the commits that did not see it and lets no later one pass, as with tenants: advisory
-- locks queue fairly, and holding one writes nothing. 1936028531 = 'sess' in ASCII: the class of these locks.
CREATE FUNCTION hold_session_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1936028531, uuid_hash(OLD.session_key));
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION hold_session_change() FROM PUBLIC;
CREATE TRIGGER hold_session_change BEFORE UPDATE ON sessions FOR EACH ROW EXECUTE FUNCTION hold_session_change();

-- Writes a group, or nothing of it. Call it in a statement of its own, without BEGIN. With the caller's rights: it gives
-- nobody more than he has. It raises
--   FGC01  something does not hold any more; DETAIL is {"tenants": [...], "sessions": [...], "calls": [...]}: tenants
--          and sessions whose version moved, ids of decisions and keys of recorded calls that another commit took;
--   FGB01  a caller is told no by now: it took longer than budget_ms, or it is later than until_ms by this server's
--          clock (milliseconds since 1970), which counts the way here too;
--   55P03  a lock was not free within that time.
-- Locks are taken in one order by everybody: new sessions, tenants, sessions, calls, anchors, lanes, each sorted.
CREATE FUNCTION commit_group(
  budget_ms double precision, until_ms double precision, happened_at timestamptz, revision text,
  s_key uuid[], s_tenant text[], s_runtime text[], s_id text[], s_correlation uuid[],
  held_tenant text[], held_tenant_version bigint[], held_session uuid[], held_session_version bigint[],
  d_id uuid[], d_tenant text[], d_session uuid[], d_correlation uuid[], d_call uuid[], d_requested uuid[],
  d_runtime text[], d_phase text[], d_tool text[], d_effect text[], d_decision text[], d_reason text[],
  d_plan_digest text[], d_matched_rules text[], d_request jsonb[], d_request_sealed bytea[], d_request_ref text[],
  d_payload_ref text[], d_facts jsonb[], d_answer jsonb[],
  h_call uuid[], h_tenant text[],
  a_key uuid[], a_tenant text[], a_session uuid[], a_event uuid[],
  c_id uuid[], c_tenant text[], c_decision uuid[], c_session uuid[], c_tool text[], c_resource text[],
  c_plan_digest text[], c_constraints jsonb[], c_max_calls integer[], c_expires_at timestamptz[],
  e_id uuid[], e_tenant text[], e_key_version integer[], e_data_class text[], e_digest bytea[], e_nonce bytea[],
  e_tag bytea[], e_sealed bytea[], e_size integer[],
  o_id uuid[], o_type text[], o_key text[], o_tenant text[], o_payload bytea[], o_headers jsonb[]
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

  IF cardinality(s_key) > 0 THEN
    INSERT INTO gate.sessions (session_key, tenant_id, runtime, session_id, correlation_id, first_seen_at)
    SELECT r.*, happened_at FROM unnest(s_key, s_tenant, s_runtime, s_id, s_correlation) AS r
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
    IF cardinality(d_id) > 0 THEN
      INSERT INTO gate.decisions (decision_id, tenant_id, session_key, correlation_id, call_key, requested_event_id,
        runtime, phase, tool, effect_class, decision, reason_code, plan_digest, policy_revision, matched_rules,
        request, request_sealed, request_ref, payload_ref, facts, answer, decided_at)
      SELECT r.id, r.tenant, r.session, r.correlation, r.call, r.requested, r.runtime, r.phase, r.tool, r.effect,
        r.decision, r.reason, r.plan_digest, revision, r.matched_rules::text[],
        r.request, r.request_sealed, r.request_ref, r.payload_ref, r.facts, r.answer, happened_at
      FROM unnest(d_id, d_tenant, d_session, d_correlation, d_call, d_requested, d_runtime, d_phase, d_tool, d_effect,
        d_decision, d_reason, d_plan_digest, d_matched_rules, d_request, d_request_sealed, d_request_ref,
        d_payload_ref, d_facts, d_answer)
        AS r(id, tenant, session, correlation, call, requested, runtime, phase, tool, effect, decision, reason,
          plan_digest, matched_rules, request, request_sealed, request_ref, payload_ref, facts, answer)
      ON CONFLICT (call_key) WHERE call_key IS NOT NULL DO NOTHING;
      GET DIAGNOSTICS added = ROW_COUNT;
      IF added < cardinality(d_id) THEN
        SELECT array_agg(k) INTO taken FROM unnest(d_id) AS k
        WHERE NOT EXISTS (SELECT FROM gate.decisions AS d WHERE d.decision_id = k);
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

  IF cardinality(a_key) > 0 THEN
    INSERT INTO gate.anchors (anchor_key, tenant_id, session_key, event_id, recorded_at)
    SELECT r.*, happened_at FROM unnest(a_key, a_tenant, a_session, a_event) AS r
    ON CONFLICT (anchor_key) DO UPDATE SET event_id = excluded.event_id, recorded_at = excluded.recorded_at;
  END IF;
  IF cardinality(c_id) > 0 THEN
    INSERT INTO gate.capabilities (capability_id, tenant_id, decision_id, session_key, tool, resource, plan_digest,
      policy_revision, constraints, max_calls, expires_at, issued_at)
    SELECT r.id, r.tenant, r.decision, r.session, r.tool, r.resource, r.plan_digest, revision,
      r.constraints, r.max_calls, r.expires_at, happened_at
    FROM unnest(c_id, c_tenant, c_decision, c_session, c_tool, c_resource, c_plan_digest, c_constraints, c_max_calls,
      c_expires_at)
      AS r(id, tenant, decision, session, tool, resource, plan_digest, constraints, max_calls, expires_at);
  END IF;
  IF cardinality(e_id) > 0 THEN
    INSERT INTO vault.evidence (evidence_id, tenant_id, key_version, data_class, digest, nonce, tag, sealed, size_bytes)
    SELECT * FROM unnest(e_id, e_tenant, e_key_version, e_data_class, e_digest, e_nonce, e_tag, e_sealed, e_size);
  END IF;
  PERFORM outbox.append(o_id, o_type, o_key, o_tenant, o_payload, o_headers);

  IF extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000 > budget_ms
    OR extract(epoch FROM clock_timestamp()) * 1000 > until_ms THEN
    RAISE EXCEPTION 'a caller is told no by now' USING ERRCODE = 'FGB01';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION commit_group FROM PUBLIC;
