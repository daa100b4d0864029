-- What the gate decided, and what it has to remember to decide again. Keys are UUIDs derived from the runtime's own
-- ids (SHA-256), so that a key has one size whatever a runtime calls things.

CREATE TABLE sessions (
  session_key    uuid PRIMARY KEY,
  tenant_id      text NOT NULL,
  runtime        text NOT NULL,
  session_id     text NOT NULL,
  correlation_id uuid NOT NULL,
  -- What the session has touched; rules of later calls read it.
  labels         text[] NOT NULL DEFAULT '{}',
  -- Raised with every change of the row. A session that is not there yet counts as version 0.
  version        bigint NOT NULL DEFAULT 0,
  first_seen_at  timestamptz NOT NULL
);

CREATE TABLE decisions (
  decision_id        uuid PRIMARY KEY,
  tenant_id          text NOT NULL,
  session_key        uuid NOT NULL,
  correlation_id     uuid NOT NULL,
  -- The hook call; null when the runtime named none, and then each call is new.
  call_key           uuid,
  requested_event_id uuid NOT NULL,
  runtime            text NOT NULL,
  phase              text NOT NULL,
  tool               text NOT NULL,
  effect_class       text NOT NULL,
  decision           text NOT NULL CHECK (decision IN ('allow', 'deny', 'require_approval', 'defer', 'modify')),
  reason_code        text NOT NULL,
  plan_digest        text,
  policy_revision    text NOT NULL,
  matched_rules      text[] NOT NULL,
  -- Secrets masked. The exact request is in request_sealed when masking changed it, or in the vault when it is large.
  request            jsonb NOT NULL,
  request_sealed     bytea,
  request_ref        text,
  payload_ref        text,
  facts              jsonb NOT NULL,
  answer             jsonb NOT NULL,
  decided_at         timestamptz NOT NULL
);
-- INVARIANT: one call, one decision, at however many gates it arrives at once
-- (test/integration/gate-dedupe.test.ts "makes one decision when the same call arrives at two gates at once").
CREATE UNIQUE INDEX decisions_call ON decisions (call_key) WHERE call_key IS NOT NULL;
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, decided_at);
CREATE INDEX decisions_by_session ON decisions (session_key, decided_at);

-- Observing hook calls that were recorded, so that the same one again adds nothing. Gated calls have their decision.
CREATE TABLE hook_calls (
  call_key    uuid PRIMARY KEY,
  tenant_id   text NOT NULL,
  recorded_at timestamptz NOT NULL
);
CREATE INDEX hook_calls_retention ON hook_calls (recorded_at);

-- Which event a session, turn, call or child agent hangs on: the causation of what comes after.
CREATE TABLE anchors (
  anchor_key  uuid PRIMARY KEY,
  tenant_id   text NOT NULL,
  session_key uuid NOT NULL,
  event_id    uuid NOT NULL,
  recorded_at timestamptz NOT NULL
);
CREATE INDEX anchors_retention ON anchors (recorded_at);

CREATE TABLE capabilities (
  capability_id   uuid PRIMARY KEY,
  tenant_id       text NOT NULL,
  decision_id     uuid NOT NULL,
  session_key     uuid NOT NULL,
  tool            text NOT NULL,
  -- Secrets masked; the plan is bound by its digest.
  resource        text,
  plan_digest     text NOT NULL,
  policy_revision text NOT NULL,
  constraints     jsonb NOT NULL,
  max_calls       integer NOT NULL CHECK (max_calls > 0),
  calls_used      integer NOT NULL DEFAULT 0 CHECK (calls_used >= 0 AND calls_used <= max_calls),
  issued_at       timestamptz NOT NULL,
  expires_at      timestamptz NOT NULL,
  revoked_at      timestamptz
);
CREATE INDEX capabilities_by_tenant ON capabilities (tenant_id, issued_at);
