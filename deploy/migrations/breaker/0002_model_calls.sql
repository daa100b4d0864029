-- Which of several reports of one model call is in the buckets: the one that tells more, then the first recorded.
CREATE TABLE model_calls (
  tenant_id   text        COLLATE "C" NOT NULL,
  call_key    text        COLLATE "C" NOT NULL,
  event_id    text        COLLATE "C" NOT NULL,
  -- 0: it tells most.
  silence     smallint    NOT NULL,
  recorded_at timestamptz NOT NULL,
  -- What it added, and to which scopes: taken back when a better report comes.
  scopes      jsonb       NOT NULL,
  cost_micros bigint      NOT NULL,
  priced      bigint      NOT NULL,
  wait_ms     bigint      NOT NULL,
  PRIMARY KEY (tenant_id, call_key)
);
CREATE INDEX model_calls_retention ON model_calls (recorded_at);

-- Trips are shown to analysts.
SELECT access.protect('trips', 'tenant_id');
SELECT access.protect('resets', 'tenant_id');
