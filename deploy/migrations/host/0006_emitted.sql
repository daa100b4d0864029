-- What processors set off, and of what: so that a host knows in its own transaction whose emissions an event comes from, also
-- when the processors of the chain run in hosts that do not know of each other. Kept as long as the inbox.
CREATE TABLE emitted (
  event_id   uuid        PRIMARY KEY,
  cause_id   uuid        NOT NULL,
  processor  text        NOT NULL,
  emitted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX emitted_at ON emitted (emitted_at);
