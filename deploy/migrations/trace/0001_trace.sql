-- Spans of what agents did, one tree per correlation, put together from events in any order.

-- One row per correlation: its root.
CREATE TABLE traces (
  tenant_id      text        COLLATE "C" NOT NULL,
  correlation_id text        COLLATE "C" NOT NULL,
  events         bigint      NOT NULL,
  first_at       timestamptz NOT NULL,
  last_at        timestamptz NOT NULL,
  -- The client's own trace, as the earliest event that names one does.
  client_at      timestamptz,
  client_event   uuid,
  client_traceparent text,
  attributes     jsonb       NOT NULL,
  -- Set once the correlation has more spans than are kept: what comes at or after this place is left out.
  cut_depth      smallint,
  cut_id         text        COLLATE "C",
  PRIMARY KEY (tenant_id, correlation_id)
) WITH (fillfactor = 80);
CREATE INDEX traces_correlation ON traces (correlation_id);
CREATE INDEX traces_age ON traces (last_at);

CREATE TABLE spans (
  tenant_id      text        COLLATE "C" NOT NULL,
  correlation_id text        COLLATE "C" NOT NULL,
  span_id        text        COLLATE "C" NOT NULL CHECK (length(span_id) = 16),
  topic          text        NOT NULL,
  -- A parent's depth is lower than its child's: a cut by (depth, span_id) never takes a parent of what it keeps.
  depth          smallint    NOT NULL,
  identity       text        NOT NULL,
  parent_id      text        COLLATE "C",
  parent_rank    smallint    NOT NULL,
  is_real        boolean     NOT NULL,
  cause_event    uuid,
  start_rank     smallint    NOT NULL,
  started_at     timestamptz,
  end_rank       smallint    NOT NULL,
  ended_at       timestamptz,
  holds_until    timestamptz,
  status_rank    smallint    NOT NULL,
  status         text        NOT NULL CHECK (status IN ('unset', 'ok', 'error')),
  error_type     text,
  attributes     jsonb       NOT NULL,
  links          text[]      NOT NULL,
  PRIMARY KEY (tenant_id, correlation_id, span_id)
) WITH (fillfactor = 80);
CREATE INDEX spans_identity ON spans USING hash (identity);
CREATE INDEX spans_id ON spans (span_id);
CREATE INDEX spans_depth ON spans (tenant_id, correlation_id, depth, span_id);

-- Events that others name as their cause, with the span that they belong to.
CREATE TABLE causes (
  tenant_id      text        COLLATE "C" NOT NULL,
  correlation_id text        COLLATE "C" NOT NULL,
  event_id       uuid        NOT NULL,
  span_id        text        COLLATE "C" NOT NULL,
  depth          smallint    NOT NULL,
  at             timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, correlation_id, event_id)
);

-- The way of each decision's event: committed, sent, projected here. It tells of one run, so a rebuild's differs.
CREATE TABLE deliveries (
  tenant_id      text        COLLATE "C" NOT NULL,
  correlation_id text        COLLATE "C" NOT NULL,
  event_id       uuid        NOT NULL,
  event_type     text        NOT NULL,
  span_id        text        COLLATE "C" NOT NULL,
  depth          smallint    NOT NULL,
  destination    text        NOT NULL,
  partition      integer     NOT NULL,
  kafka_offset   bigint      NOT NULL,
  recorded_at    timestamptz NOT NULL,
  published_at   timestamptz,
  projected_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  batch_messages integer     NOT NULL,
  PRIMARY KEY (tenant_id, correlation_id, event_id)
);

-- Correlations that have something to export, and when the last of it came by our clock. The exporter takes rows away.
CREATE TABLE arrivals (
  tenant_id      text        COLLATE "C" NOT NULL,
  correlation_id text        COLLATE "C" NOT NULL,
  arrived_at     timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, correlation_id)
) WITH (fillfactor = 70);
CREATE INDEX arrivals_age ON arrivals (arrived_at);
