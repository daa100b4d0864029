-- What a decision changes beside itself: approvals, counters, a session's labels, how long a plan has been deferred,
-- and the stored answer that it takes the place of. All in the decision's own commit.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- The root session of a child: labels are the root's, so that what a sub-agent touched counts for its parent.
ALTER TABLE sessions ADD COLUMN root_key uuid;

-- A call that was decided again: the older decision has lost its call_key.
ALTER TABLE decisions ADD COLUMN superseded_by uuid;
ALTER TABLE decisions ADD COLUMN superseded_at timestamptz;
CREATE INDEX decisions_superseded ON decisions (superseded_by) WHERE superseded_by IS NOT NULL;

-- Exact rewritten inputs of answers that show them masked.
CREATE TABLE sealed_answers (
  decision_id uuid PRIMARY KEY,
  tenant_id   text NOT NULL,
  sealed      bytea NOT NULL
);

-- A frozen plan that a person has to agree to. One approval, one plan, one use.
CREATE TABLE approvals (
  approval_id   uuid PRIMARY KEY,
  tenant_id     text NOT NULL,
  session_key   uuid NOT NULL,
  agent_id      text NOT NULL DEFAULT '',
  -- Of the plan as proposed, to find it by; and of the plan as frozen, which is what is agreed to.
  intent_digest text NOT NULL,
  plan_digest   text NOT NULL,
  -- The decision that asked for it.
  decision_id   uuid NOT NULL,
  correlation_id uuid NOT NULL,
  runtime       text NOT NULL,
  tool          text NOT NULL,
  effect_class  text NOT NULL,
  risk_score    integer NOT NULL,
  risk          text NOT NULL,
  -- Whose token asked: nobody approves what he asked for.
  requester     text NOT NULL,
  -- Secrets masked; the exact plan is in plan_sealed.
  plan          jsonb NOT NULL,
  plan_sealed   bytea NOT NULL,
  constraints   jsonb NOT NULL,
  matched_rules text[] NOT NULL,
  message       text NOT NULL,
  policy_revision text NOT NULL,
  state         text NOT NULL DEFAULT 'pending'
    CHECK (state IN ('pending', 'approved', 'refused', 'expired', 'consumed', 'voided')),
  created_at    timestamptz NOT NULL,
  -- Past it nothing passes by it, whatever the state says.
  expires_at    timestamptz NOT NULL,
  decided_at    timestamptz,
  decided_by    text,
  note          text,
  -- The decision and the call that used it up.
  consumed_at   timestamptz,
  consumed_by_decision uuid,
  consumed_call uuid,
  -- Whether an event says that it expired.
  is_announced  boolean NOT NULL DEFAULT false
);
-- INVARIANT: one open approval for one plan, at however many gates it is asked for at once
-- (test/integration/approvals.test.ts "asks once when the same plan is asked for at two gates").
CREATE UNIQUE INDEX approvals_open ON approvals (tenant_id, session_key, agent_id, intent_digest) WHERE state = 'pending';
CREATE INDEX approvals_of_plan ON approvals (session_key, agent_id, intent_digest, created_at DESC);
CREATE INDEX approvals_by_tenant ON approvals (tenant_id, state, created_at);
CREATE INDEX approvals_end ON approvals (expires_at) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_unannounced ON approvals (approval_id) WHERE state = 'expired' AND NOT is_announced;
CREATE INDEX approvals_pending_of_session ON approvals (session_key) WHERE state = 'pending';

-- What rates and budgets count. The key names the rule, the scope and the window.
CREATE TABLE counters (
  counter_key text PRIMARY KEY,
  tenant_id   text NOT NULL,
  spent       bigint NOT NULL,
  -- When it can be forgotten; null: never.
  expires_at  timestamptz
);
CREATE INDEX counters_end ON counters (expires_at) WHERE expires_at IS NOT NULL;

-- Facts that other services computed, each with its time.
CREATE TABLE dated_facts (
  tenant_id   text NOT NULL,
  name        text NOT NULL,
  value       jsonb NOT NULL,
  at          timestamptz NOT NULL,
  reported_by text NOT NULL,
  PRIMARY KEY (tenant_id, name)
);

-- Since when a plan waits for facts. The row goes when the plan is decided otherwise.
CREATE TABLE deferrals (
  session_key   uuid NOT NULL,
  agent_id      text NOT NULL DEFAULT '',
  intent_digest text NOT NULL,
  tenant_id     text NOT NULL,
  since         timestamptz NOT NULL,
  until         timestamptz NOT NULL,
  PRIMARY KEY (session_key, agent_id, intent_digest)
);

-- The one change of a decision's row that there is. Returns the decisions that another commit took the place of first.
CREATE FUNCTION supersede_decisions(ids uuid[], calls uuid[], successors uuid[], happened_at timestamptz) RETURNS uuid[]
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  missed uuid[];
BEGIN
  PERFORM FROM decisions AS d WHERE d.decision_id = ANY (ids) ORDER BY d.decision_id FOR UPDATE;
  WITH replaced AS (
    UPDATE decisions AS d SET call_key = NULL, superseded_by = r.successor, superseded_at = happened_at
    FROM unnest(ids, calls, successors) AS r(id, call, successor)
    WHERE d.decision_id = r.id AND d.call_key = r.call
    RETURNING d.decision_id)
  SELECT array_agg(i) INTO missed FROM unnest(ids) AS i WHERE NOT EXISTS (SELECT FROM replaced WHERE decision_id = i);
  RETURN coalesce(missed, '{}');
END
$$;
REVOKE ALL ON FUNCTION supersede_decisions(uuid[], uuid[], uuid[], timestamptz) FROM PUBLIC;

-- Applies what a group of decisions changes beside itself, or raises FGC01 with DETAIL {"tenants": [], "sessions": [...],
-- "calls": [], "approvals": [...], "counters": [...], "superseded": [...]}: what does not hold any more. NULL: nothing.
-- Call it in the transaction that writes the decisions and BEFORE it inserts them (a superseded one gives up its
-- call_key), after new sessions and tenants. `x`:
--   budget_ms, at
--   tenants:      ids held, as in commit_group
--   new_sessions: [{key, tenant, runtime, id, correlation}]
--   sessions:     [{key, version, labels, root}]: held shared when labels are empty and root is null, else exclusively,
--                 and labelled, and linked to its root. When any session of a group is changed, all that the group holds
--                 are here and none is in held_session: both kinds of lock in one sorted pass, so that two groups never
--                 wait for each other and no lock is upgraded
--   counters:     [{key, tenant, amount, limit, expires}]: each key once
--   requested:    [{id, tenant, session, agent, intent, plan_digest, decision, correlation, runtime, tool, effect, score,
--                 risk, requester, plan, sealed (base64), constraints, rules, message, revision, expires}]
--   consumed:     [{id, decision, call, plan_digest}]     voided: [id]
--   deferred:     [{session, agent, intent, tenant, until}]   resumed: [{session, agent, intent}]
--   superseded:   [{decision, call, by}]     sealed: [{decision, tenant, sealed (base64)}]
CREATE FUNCTION apply_consequences(x jsonb) RETURNS void LANGUAGE plpgsql AS $$
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
      SELECT uuid_hash(r.key) AS hash, bool_or(cardinality(r.labels) > 0 OR r.root IS NOT NULL) AS changes
      FROM jsonb_to_recordset(x -> 'sessions') AS r(key uuid, labels text[], root uuid) GROUP BY 1 ORDER BY 1
    LOOP
      IF one.changes THEN PERFORM pg_advisory_xact_lock(1936028531, one.hash);
      ELSE PERFORM pg_advisory_xact_lock_shared(1936028531, one.hash);
      END IF;
    END LOOP;
    -- A statement of its own, and so a snapshot of its own: what was committed while we waited is seen.
    SELECT array_agg(r.key) INTO moved_sessions
    FROM jsonb_to_recordset(x -> 'sessions') AS r(key uuid, version bigint)
    LEFT JOIN gate.sessions AS s ON s.session_key = r.key
    WHERE s.version IS DISTINCT FROM r.version;
    IF moved_sessions IS NULL THEN
      UPDATE gate.sessions AS s
      SET labels = ARRAY(SELECT DISTINCT l FROM unnest(s.labels || r.labels) AS l ORDER BY l), version = s.version + 1,
        root_key = coalesce(s.root_key, r.root)
      FROM jsonb_to_recordset(x -> 'sessions') AS r(key uuid, labels text[], root uuid)
      WHERE s.session_key = r.key
        AND (NOT r.labels <@ s.labels OR (s.root_key IS NULL AND r.root IS NOT NULL));
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
      -- One whose time is up is in nobody's way, whether or not it was swept already.
      UPDATE gate.approvals AS a SET state = 'expired'
      FROM jsonb_to_recordset(x -> 'requested') AS r(tenant text, session uuid, agent text, intent text)
      WHERE a.tenant_id = r.tenant AND a.session_key = r.session AND a.agent_id = r.agent
        AND a.intent_digest = r.intent AND a.state = 'pending' AND a.expires_at <= clock_timestamp();
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
REVOKE ALL ON FUNCTION apply_consequences(jsonb) FROM PUBLIC;
