-- How many agents stand between a session and what a person or an event from outside began: 0 for a root, one more than its
-- parent for a session that another one started. `apply_consequences` once more, new against 0007:
--   sessions:   `depth` of a session that is linked, or whose parent turned out to be deeper than was known, else 0; a gate
--               of before this file does not say it, and then a link makes it 1

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

ALTER TABLE sessions ADD COLUMN automation_depth integer NOT NULL DEFAULT 0;
UPDATE sessions SET automation_depth = 1 WHERE root_key IS NOT NULL;

CREATE OR REPLACE FUNCTION apply_consequences(x jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  ignored text;
  one record;
  happened_at timestamptz := (x ->> 'at')::timestamptz;
  moved_sessions uuid[];
  lost_approvals uuid[] := '{}';
  some_approvals uuid[];
  spent_counters text[];
  missed uuid[] := '{}';
  kept uuid[];
BEGIN
  IF x IS NULL THEN RETURN; END IF;
  ignored := set_config('lock_timeout', greatest(1, ceil((x ->> 'budget_ms')::float8))::integer::text, true);

  IF jsonb_array_length(x -> 'new_sessions') > 0 THEN
    INSERT INTO gate.sessions (session_key, tenant_id, runtime, session_id, correlation_id, first_seen_at)
    SELECT r.key, r.tenant, r.runtime, r.id, r.correlation, happened_at
    FROM jsonb_to_recordset(x -> 'new_sessions') AS r(key uuid, tenant text, runtime text, id text, correlation uuid)
    ORDER BY r.key
    ON CONFLICT DO NOTHING;
  END IF;
  IF jsonb_array_length(x -> 'sessions') > 0 THEN
    PERFORM access.hold_tenants(ARRAY(SELECT jsonb_array_elements_text(x -> 'tenants')));
    FOR one IN
      SELECT uuid_hash(r.key) AS hash, bool_or(cardinality(r.labels) > 0 OR r.root IS NOT NULL OR r.depth > 0) AS changes
      FROM jsonb_to_recordset(x -> 'sessions') AS r(key uuid, labels text[], root uuid, depth integer)
      GROUP BY 1 ORDER BY 1
    LOOP
      IF one.changes THEN PERFORM pg_advisory_xact_lock(1936028531, one.hash);
      ELSE PERFORM pg_advisory_xact_lock_shared(1936028531, one.hash);
      END IF;
    END LOOP;
    -- A statement of its own, and so a snapshot of its own: what was committed while we waited is seen.
    SELECT array_agg(r.key) INTO moved_sessions
    FROM jsonb_to_recordset(x -> 'sessions') AS r(key uuid, version bigint)
    LEFT JOIN gate.sessions AS s ON s.session_key = r.key
    WHERE r.version IS NOT NULL AND s.version IS DISTINCT FROM r.version;
    IF moved_sessions IS NULL THEN
      UPDATE gate.sessions AS s
      SET labels = ARRAY(SELECT DISTINCT l FROM unnest(s.labels || r.labels) AS l ORDER BY l), version = s.version + 1,
        root_key = coalesce(s.root_key, r.root),
        automation_depth = greatest(s.automation_depth, coalesce(r.depth, (r.root IS NOT NULL)::integer))
      FROM jsonb_to_recordset(x -> 'sessions') AS r(key uuid, labels text[], root uuid, depth integer)
      WHERE s.session_key = r.key
        AND (NOT r.labels <@ s.labels OR (s.root_key IS NULL AND r.root IS NOT NULL) OR r.depth > s.automation_depth);
    END IF;
  END IF;

  IF moved_sessions IS NULL THEN
    IF jsonb_array_length(x -> 'counters') > 0 THEN
      INSERT INTO gate.counters AS c (counter_key, tenant_id, spent, expires_at)
      SELECT r.key, r.tenant, r.amount, r.expires
      FROM jsonb_to_recordset(x -> 'counters') AS r(key text, tenant text, amount bigint, expires timestamptz)
      ORDER BY r.key
      ON CONFLICT (counter_key) DO UPDATE SET spent = c.spent + excluded.spent, expires_at = excluded.expires_at;
      SELECT array_agg(r.key) INTO spent_counters
      FROM jsonb_to_recordset(x -> 'counters') AS r(key text, "limit" bigint)
      JOIN gate.counters AS c ON c.counter_key = r.key
      WHERE c.spent > r."limit";
    END IF;
    IF jsonb_array_length(x -> 'consumed') > 0 THEN
      PERFORM FROM gate.approvals AS a
      WHERE a.approval_id IN (SELECT id FROM jsonb_to_recordset(x -> 'consumed') AS r(id uuid))
      ORDER BY a.approval_id FOR UPDATE;
      WITH used AS (
        UPDATE gate.approvals AS a
        SET state = 'consumed', consumed_at = happened_at, consumed_by_decision = r.decision, consumed_call = r.call
        FROM jsonb_to_recordset(x -> 'consumed') AS r(id uuid, decision uuid, call uuid, plan_digest text)
        WHERE a.approval_id = r.id AND a.state = 'approved' AND a.plan_digest = r.plan_digest
          AND a.expires_at > clock_timestamp()
        RETURNING a.approval_id)
      SELECT array_agg(r.id) INTO some_approvals
      FROM jsonb_to_recordset(x -> 'consumed') AS r(id uuid)
      WHERE NOT EXISTS (SELECT FROM used WHERE approval_id = r.id);
      lost_approvals := lost_approvals || coalesce(some_approvals, '{}');
    END IF;
    IF jsonb_array_length(x -> 'voided') > 0 THEN
      PERFORM FROM gate.approvals AS a
      WHERE a.approval_id IN (SELECT v::uuid FROM jsonb_array_elements_text(x -> 'voided') AS v)
      ORDER BY a.approval_id FOR UPDATE;
      WITH gone AS (
        UPDATE gate.approvals AS a SET state = 'voided'
        WHERE a.approval_id IN (SELECT v::uuid FROM jsonb_array_elements_text(x -> 'voided') AS v)
          AND a.state IN ('pending', 'approved')
        RETURNING a.approval_id)
      SELECT array_agg(v::uuid) INTO some_approvals FROM jsonb_array_elements_text(x -> 'voided') AS v
      WHERE NOT EXISTS (SELECT FROM gone WHERE approval_id = v::uuid);
      lost_approvals := lost_approvals || coalesce(some_approvals, '{}');
    END IF;
    IF jsonb_array_length(x -> 'requested') > 0 THEN
      -- One after the other for each session, so that two gates do not count past each other. 1634758770 = 'appr' in ASCII.
      FOR one IN SELECT DISTINCT uuid_hash(r.session) AS hash
        FROM jsonb_to_recordset(x -> 'requested') AS r(session uuid) ORDER BY 1
      LOOP
        PERFORM pg_advisory_xact_lock(1634758770, one.hash);
      END LOOP;
      -- One whose time is up is in nobody's way, whether or not it was swept already.
      UPDATE gate.approvals AS a SET state = 'expired'
      FROM jsonb_to_recordset(x -> 'requested') AS r(tenant text, session uuid, agent text, intent text)
      WHERE a.tenant_id = r.tenant AND a.session_key = r.session AND a.agent_id = r.agent
        AND a.intent_digest = r.intent AND a.state = 'pending' AND a.expires_at <= clock_timestamp();
      SELECT array_agg(w.id) INTO some_approvals FROM (
        SELECT r.id, r.max_open, row_number() OVER (PARTITION BY r.session ORDER BY r.id) AS place,
          (SELECT count(*) FROM gate.approvals AS a
            WHERE a.session_key = r.session AND a.state = 'pending' AND a.expires_at > clock_timestamp()) AS open
        FROM jsonb_to_recordset(x -> 'requested') AS r(id uuid, session uuid, max_open integer)) AS w
      WHERE w.open + w.place > w.max_open;
      lost_approvals := lost_approvals || coalesce(some_approvals, '{}');
      WITH added AS (
        INSERT INTO gate.approvals (approval_id, tenant_id, session_key, agent_id, intent_digest, plan_digest,
          decision_id, correlation_id, runtime, tool, effect_class, risk_score, risk, requester, plan, plan_sealed,
          constraints, matched_rules, message, policy_revision, created_at, expires_at)
        SELECT r.id, r.tenant, r.session, r.agent, r.intent, r.plan_digest, r.decision, r.correlation, r.runtime, r.tool,
          r.effect, r.score, r.risk, r.requester, r.plan, decode(r.sealed, 'base64'), r.constraints, r.rules, r.message,
          r.revision, happened_at, r.expires
        FROM jsonb_to_recordset(x -> 'requested') AS r(id uuid, tenant text, session uuid, agent text, intent text,
          plan_digest text, decision uuid, correlation uuid, runtime text, tool text, effect text, score integer,
          risk text, requester text, plan jsonb, sealed text, constraints jsonb, rules text[], message text,
          revision text, expires timestamptz)
        ORDER BY r.session, r.agent, r.intent
        ON CONFLICT (tenant_id, session_key, agent_id, intent_digest) WHERE state = 'pending' DO NOTHING
        RETURNING approval_id)
      SELECT array_agg(r.id) INTO some_approvals FROM jsonb_to_recordset(x -> 'requested') AS r(id uuid)
      WHERE NOT EXISTS (SELECT FROM added WHERE approval_id = r.id);
      lost_approvals := lost_approvals || coalesce(some_approvals, '{}');
    END IF;
    IF jsonb_array_length(x -> 'superseded') > 0 THEN
      SELECT gate.supersede_decisions(array_agg(r.decision ORDER BY r.decision), array_agg(r.call ORDER BY r.decision),
        array_agg(r.by ORDER BY r.decision), happened_at) INTO missed
      FROM jsonb_to_recordset(x -> 'superseded') AS r(decision uuid, call uuid, by uuid);
      PERFORM FROM gate.capabilities AS c
      WHERE c.capability_id IN (SELECT r.ends FROM jsonb_to_recordset(x -> 'superseded') AS r(ends uuid))
      ORDER BY c.capability_id FOR UPDATE;
      WITH ended AS (
        UPDATE gate.capabilities AS c
        SET revoked_at = happened_at, revoked_by = 'fabric', revoke_reason = 'the call was decided again'
        FROM jsonb_to_recordset(x -> 'superseded') AS r(ends uuid)
        WHERE c.capability_id = r.ends AND c.revoked_at IS NULL AND c.calls_used = 0
        RETURNING c.capability_id)
      SELECT array_agg(r.decision) INTO kept
      FROM jsonb_to_recordset(x -> 'superseded') AS r(decision uuid, ends uuid)
      WHERE r.ends IS NOT NULL AND NOT EXISTS (SELECT FROM ended WHERE capability_id = r.ends);
      missed := missed || coalesce(kept, '{}');
    END IF;
  END IF;

  IF moved_sessions IS NOT NULL OR spent_counters IS NOT NULL OR cardinality(lost_approvals) > 0
    OR cardinality(missed) > 0 THEN
    RAISE EXCEPTION 'the group does not hold any more' USING ERRCODE = 'FGC01', DETAIL = json_build_object(
      'tenants', '{}'::text[], 'sessions', coalesce(moved_sessions, '{}'), 'calls', '{}'::text[],
      'approvals', lost_approvals, 'counters', coalesce(spent_counters, '{}'), 'superseded', missed)::text;
  END IF;

  IF jsonb_array_length(x -> 'deferred') > 0 THEN
    INSERT INTO gate.deferrals (session_key, agent_id, intent_digest, tenant_id, since, until)
    SELECT r.session, r.agent, r.intent, r.tenant, happened_at, r.until
    FROM jsonb_to_recordset(x -> 'deferred') AS r(session uuid, agent text, intent text, tenant text, until timestamptz)
    ORDER BY r.session, r.agent, r.intent
    ON CONFLICT (session_key, agent_id, intent_digest) DO NOTHING;
  END IF;
  IF jsonb_array_length(x -> 'resumed') > 0 THEN
    DELETE FROM gate.deferrals AS d
    USING jsonb_to_recordset(x -> 'resumed') AS r(session uuid, agent text, intent text)
    WHERE d.session_key = r.session AND d.agent_id = r.agent AND d.intent_digest = r.intent;
  END IF;
  IF jsonb_array_length(x -> 'sealed') > 0 THEN
    INSERT INTO gate.sealed_answers (decision_id, tenant_id, sealed)
    SELECT r.decision, r.tenant, decode(r.sealed, 'base64')
    FROM jsonb_to_recordset(x -> 'sealed') AS r(decision uuid, tenant text, sealed text);
  END IF;
END
$$;
