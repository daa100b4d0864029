-- State of the processors that the host runs. The same file builds a shadow: no name is qualified.

-- How far each processor has read. next_offset moves in the transaction of the projection, and only from the value that
-- the writer expected and under the epoch that it took: of two members that believe to own a partition, one commits.
CREATE TABLE watermarks (
  processor    text        NOT NULL,
  topic        text        NOT NULL,
  partition    integer     NOT NULL CHECK (partition >= 0),
  next_offset  bigint      NOT NULL CHECK (next_offset >= 0),
  epoch        bigint      NOT NULL DEFAULT 1,
  owner        text        NOT NULL,
  -- Set while the partition waits for a person: records that were never processed are gone.
  stopped_cause text,
  stopped_at   timestamptz,
  updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (processor, topic, partition)
) WITH (fillfactor = 70);

-- One row per event that a processor has claimed. Answers what was published twice; redelivery is answered by the
-- watermark, so old rows can go.
CREATE TABLE inbox (
  event_id   uuid        NOT NULL,
  processor  text        COLLATE "C" NOT NULL,
  claimed_at timestamptz NOT NULL DEFAULT now(),
  -- The id first: it differs at once, and the tree compares no text on its way down.
  PRIMARY KEY (event_id, processor)
);
-- Rows come in time order: a few pages of summary instead of a second tree.
CREATE INDEX inbox_claimed_at ON inbox USING brin (claimed_at);

-- Inputs that were set aside. The bytes are in the vault.
CREATE TABLE letters (
  id                uuid        PRIMARY KEY,
  kind              text        NOT NULL CHECK (kind IN ('quarantine', 'dead')),
  fault_kind        text        NOT NULL,
  code              text        NOT NULL,
  detail            text        NOT NULL,
  processor         text        NOT NULL,
  processor_version text        NOT NULL,
  attempts          integer     NOT NULL,
  tenant_id         text        NOT NULL,
  topic             text        NOT NULL,
  partition         integer     NOT NULL,
  kafka_offset      bigint      NOT NULL,
  record_timestamp  timestamptz NOT NULL,
  record_key        bytea,
  headers           jsonb       NOT NULL,
  event_id          uuid,
  payload_ref       text        NOT NULL,
  payload_digest    text        NOT NULL,
  -- Who has to look at it, and which role may send it again.
  accountable       text        NOT NULL,
  redeliver_role    text        NOT NULL,
  buried_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  redriven_at       timestamptz,
  redriven_by       text,
  archived_at       timestamptz,
  archived_by       text
);
CREATE INDEX letters_source ON letters (processor, topic, partition, kafka_offset);
CREATE INDEX letters_open ON letters (processor, code) WHERE redriven_at IS NULL AND archived_at IS NULL;

-- Processors whose emissions are held back, since when and why. A person releases them.
CREATE TABLE emission_guards (
  processor  text        PRIMARY KEY,
  reason     text        NOT NULL,
  held_since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE held_emissions (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  processor  text        NOT NULL,
  event_id   uuid        NOT NULL,
  type       text        NOT NULL,
  tenant_id  text        NOT NULL,
  ordering_key text      NOT NULL,
  payload    bytea       NOT NULL,
  headers    jsonb       NOT NULL,
  held_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (processor, event_id)
);
