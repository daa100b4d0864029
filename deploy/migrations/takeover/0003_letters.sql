-- What became of each letter: set aside (again, perhaps for another reason), sent again, put away. An item about letters is
-- closed when none of its letters waits any more.
CREATE TABLE letter_events (
  event_id    uuid        PRIMARY KEY,
  letter_id   text        COLLATE "C" NOT NULL,
  -- Of a letter that could not be read it is another one before and after.
  tenant_id   text        COLLATE "C" NOT NULL,
  kind        text        NOT NULL CHECK (kind IN ('buried', 'ended')),
  event_type  text        NOT NULL,
  -- Of a burial: the item's key.
  cause_key   text        COLLATE "C",
  recorded_at timestamptz NOT NULL,
  title       text        NOT NULL
);
CREATE INDEX letter_events_letter ON letter_events (letter_id, kind, recorded_at, event_id);
CREATE INDEX letter_events_key ON letter_events (tenant_id, cause_key, recorded_at) WHERE kind = 'buried';
