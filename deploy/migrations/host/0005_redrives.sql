-- Letters are sent through their consumer again, and a partition knows which topic it read.

-- Kafka's own id of the topic: one that was deleted and made anew has the same name and another id, however long its log.
ALTER TABLE watermarks ADD COLUMN topic_id text;

ALTER TABLE letters
  -- Tries by redrive so far; `attempts` counts these too.
  ADD COLUMN redrives integer NOT NULL DEFAULT 0,
  -- The redrive that it waits for, or that took it last; null: it waits for nobody.
  ADD COLUMN redrive_id uuid,
  -- When a redrive brought it back.
  ADD COLUMN failed_again_at timestamptz,
  ADD COLUMN archive_reason text;
CREATE INDEX letters_waiting ON letters (redrive_id, topic, partition, kafka_offset)
  WHERE redrive_id IS NOT NULL AND redriven_at IS NULL AND archived_at IS NULL;
CREATE INDEX letters_event ON letters (processor, event_id) WHERE event_id IS NOT NULL;

-- What a person asked for: letters of one processor through it again. The host that runs the processor does it.
CREATE TABLE redrives (
  id              uuid        PRIMARY KEY,
  processor       text        NOT NULL,
  requested_by    text        NOT NULL,
  -- Whose letters; null: of several tenants, by somebody who acts for all.
  tenant_id       text,
  reason          text        NOT NULL,
  selection       text        NOT NULL,
  letters         integer     NOT NULL,
  per_second      integer     NOT NULL CHECK (per_second > 0),
  requested_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The rate counts for all hosts together, by this server's clock.
  next_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- One host at a time works on it; whoever lost the lease can only repeat what the letters' marks answer.
  leased_by       text,
  leased_until    timestamptz NOT NULL DEFAULT '-infinity',
  processed       integer     NOT NULL DEFAULT 0,
  duplicates      integer     NOT NULL DEFAULT 0,
  failed          integer     NOT NULL DEFAULT 0,
  skipped         integer     NOT NULL DEFAULT 0,
  -- What it waits for right now, for whoever looks.
  waits_for       text,
  finished_at     timestamptz
);
CREATE INDEX redrives_open ON redrives (processor, requested_at) WHERE finished_at IS NULL;
