-- What the breaker counts and when it tripped. Counts are sums by the time of recording: the same whatever the order of
-- arrival. No name is qualified but those of other rooms, so that the same file builds a shadow.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE buckets (
  -- `fabric` for the scope all.
  tenant_id   text        COLLATE "C" NOT NULL,
  scope       text        COLLATE "C" NOT NULL CHECK (scope IN ('correlation', 'agent', 'tenant', 'all')),
  scope_id    text        COLLATE "C" NOT NULL,
  -- Five seconds of recorded_at begin here.
  started_at  timestamptz NOT NULL,
  events      bigint      NOT NULL,
  -- Agents that began, and calls to start one that were allowed.
  starts      bigint      NOT NULL,
  spawns      bigint      NOT NULL,
  decisions   bigint      NOT NULL,
  denials     bigint      NOT NULL,
  results     bigint      NOT NULL,
  failures    bigint      NOT NULL,
  cost_micros bigint      NOT NULL,
  -- Model calls that cost anything.
  priced      bigint      NOT NULL,
  -- From being recorded to being sent, summed over the events: of the first copy that came.
  wait_ms     bigint      NOT NULL,
  PRIMARY KEY (tenant_id, scope, scope_id, started_at)
) WITH (fillfactor = 70);
CREATE INDEX buckets_retention ON buckets (started_at);

-- Resets as their events tell: what was counted before one does not count again.
CREATE TABLE resets (
  event_id  uuid        PRIMARY KEY,
  tenant_id text        COLLATE "C" NOT NULL,
  scope     text        COLLATE "C" NOT NULL,
  scope_id  text        COLLATE "C" NOT NULL,
  trip_id   text,
  reset_by  text        NOT NULL,
  reset_at  timestamptz NOT NULL
);
CREATE INDEX resets_scope ON resets (tenant_id, scope, scope_id, reset_at);

-- When a scope went read-only, and on what evidence. Trips depend on when the breaker looked: a rebuild over an old log
-- makes none, and takes none of the holds back.
CREATE TABLE trips (
  trip_id         uuid        PRIMARY KEY,
  tenant_id       text        COLLATE "C" NOT NULL,
  scope           text        COLLATE "C" NOT NULL,
  scope_id        text        COLLATE "C" NOT NULL,
  measure         text        NOT NULL,
  observed        bigint      NOT NULL,
  threshold       bigint      NOT NULL,
  samples         bigint      NOT NULL,
  window_ms       bigint      NOT NULL,
  window_ended_at timestamptz NOT NULL,
  -- The event whose count crossed the limit, and when it was recorded.
  crossed_by      text        NOT NULL,
  crossed_at      timestamptz NOT NULL,
  tripped_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  resets_at       timestamptz
);
CREATE INDEX trips_scope ON trips (tenant_id, scope, scope_id, tripped_at);
CREATE INDEX trips_recent ON trips (tripped_at);

-- The live breaker's trips become what gates read; a shadow's do not. With its owner's right, which the processor has not.
CREATE FUNCTION hold_by_trip() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_TABLE_SCHEMA = 'breaker' THEN
    PERFORM incidents.hold_trip(NEW.trip_id, CASE WHEN NEW.scope = 'all' THEN '*' ELSE NEW.tenant_id END, NEW.scope,
      NEW.scope_id, NEW.measure,
      format('%s was %s in %s s, more than %s', replace(NEW.measure, '_', ' '), NEW.observed, NEW.window_ms / 1000,
        NEW.threshold),
      jsonb_build_object('measure', NEW.measure, 'observed', NEW.observed, 'threshold', NEW.threshold,
        'samples', NEW.samples, 'window_ms', NEW.window_ms, 'window_ended_at', NEW.window_ended_at,
        'crossed_by', NEW.crossed_by, 'crossed_at', NEW.crossed_at),
      NEW.resets_at);
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION hold_by_trip() FROM PUBLIC;
CREATE TRIGGER hold_by_trip AFTER INSERT ON trips FOR EACH ROW EXECUTE FUNCTION hold_by_trip();
