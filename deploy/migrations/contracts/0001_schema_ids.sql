-- Which schema id the registry gave each version of each event type. Producers read their ids here, so that no
-- producer ever asks the registry.
CREATE TABLE schema_ids (
  event_type text NOT NULL,
  version text NOT NULL CHECK (version ~ '^[0-9]+\.[0-9]+$'),
  subject text NOT NULL,
  schema_id integer NOT NULL CHECK (schema_id > 0),
  -- SHA-256 over the schema without its docs.
  fingerprint text NOT NULL CHECK (fingerprint ~ '^sha256:[0-9a-f]{64}$'),
  registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (event_type, version)
);

-- What each consumer understands, written by its host when it starts: who would refuse a new schema is a query.
CREATE TABLE readers (
  consumer text NOT NULL,
  event_type text NOT NULL,
  consumer_version text NOT NULL,
  max_major integer NOT NULL CHECK (max_major > 0),
  -- Paths of the must_understand fields that the consumer's schema has.
  must_understand text[] NOT NULL DEFAULT '{}',
  reported_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, event_type)
);
