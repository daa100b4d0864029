-- What of the spans has left the house. Apart from the spans themselves: a rebuild makes those anew, and must not send
-- them once more.

-- One row per correlation that an exporter has looked at.
CREATE TABLE traces (
  tenant_id      text        COLLATE "C" NOT NULL,
  correlation_id text        COLLATE "C" NOT NULL,
  -- Under which ids its first spans went out: a client's trace that becomes known later does not tear the tree apart.
  trace_id       text,
  client_span_id text,
  leased_by      text,
  leased_until   timestamptz,
  -- The arrival that was seen, when to look without a new one, and when to look at the earliest with one.
  seen_at        timestamptz,
  look_at        timestamptz,
  look_again_at  timestamptz,
  PRIMARY KEY (tenant_id, correlation_id)
) WITH (fillfactor = 70);

-- One row per span that was sent, or that the collector will not have.
CREATE TABLE spans (
  tenant_id      text        COLLATE "C" NOT NULL,
  correlation_id text        COLLATE "C" NOT NULL,
  span_id        text        COLLATE "C" NOT NULL,
  exported_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  outcome        text        NOT NULL CHECK (outcome IN ('sent', 'refused')),
  -- What was sent, in short: what became known later shows by another one.
  fingerprint    text        NOT NULL,
  is_late        boolean     NOT NULL DEFAULT false,
  PRIMARY KEY (tenant_id, correlation_id, span_id)
);
