-- What was used and what it came to. Rows of usage and entries are only added; which of several reports of one call
-- counts is the one thing that moves, by a rule that knows no order of arrival.

CREATE TABLE usage (
  event_id         text        COLLATE "C" PRIMARY KEY,
  tenant_id        text        COLLATE "C" NOT NULL,
  recorded_at      timestamptz NOT NULL,
  -- UTC day of recorded_at: our clock, so that a client's wrong one moves no cost into another month.
  day              date        NOT NULL,
  kind             text        NOT NULL CHECK (kind IN ('model', 'tool', 'subagent', 'correction')),
  -- Rows of one tenant with the same key tell of the same call.
  call_key         text        COLLATE "C",
  is_counted       boolean     NOT NULL,
  environment      text        NOT NULL,
  runtime_kind     text        NOT NULL,
  user_id          text,
  agent_id         text,
  session_id       text,
  turn_id          text,
  correlation_id   text        NOT NULL,
  model            text,
  tool             text,
  outcome          text,
  price_state      text        NOT NULL
    CHECK (price_state IN ('listed', 'reported', 'unpriced', 'unmeasured', 'free', 'correction')),
  price_pattern    text,
  price_valid_from timestamptz,
  -- Millionths of the price list's currency.
  amount_micros    bigint      NOT NULL,
  reported_micros  bigint,
  -- The three classes of input add up to all input; reasoning is part of output.
  uncached_input_tokens bigint NOT NULL,
  cached_input_tokens   bigint NOT NULL,
  cache_write_tokens    bigint NOT NULL,
  output_tokens    bigint      NOT NULL,
  reasoning_tokens bigint      NOT NULL,
  wall_ms          bigint      NOT NULL,
  output_bytes     bigint      NOT NULL,
  calls            bigint      NOT NULL,
  fan_out          bigint      NOT NULL,
  corrects_event_id text       COLLATE "C",
  cause            text,
  author           text
);
CREATE INDEX usage_call ON usage (tenant_id, call_key) WHERE call_key IS NOT NULL;
CREATE INDEX usage_tenant_day ON usage (tenant_id, day);
CREATE INDEX usage_corrects ON usage (corrects_event_id) WHERE corrects_event_id IS NOT NULL;
CREATE INDEX usage_unpriced ON usage (day) WHERE price_state IN ('unpriced', 'unmeasured');

-- Double entry: what was spent is debited (above 0), who asks for it is credited (below 0), and each event adds up to 0.
-- Lines have fixed meanings, so that (event_id, line) names an entry for good.
CREATE TABLE entries (
  event_id      text     COLLATE "C" NOT NULL,
  line          smallint NOT NULL CHECK (line > 0),
  account       text     NOT NULL,
  amount_micros bigint   NOT NULL,
  PRIMARY KEY (event_id, line)
);

-- What each budget has spent in each period.
CREATE TABLE budget_state (
  budget_id   text   COLLATE "C" NOT NULL,
  tenant_id   text   COLLATE "C" NOT NULL,
  scope       text   NOT NULL,
  scope_id    text   COLLATE "C" NOT NULL,
  -- 2026-11, or 2026-11-30.
  period      text   COLLATE "C" NOT NULL,
  spent_micros bigint NOT NULL,
  soft_micros bigint,
  hard_micros bigint,
  PRIMARY KEY (budget_id, tenant_id, scope_id, period)
) WITH (fillfactor = 70);
