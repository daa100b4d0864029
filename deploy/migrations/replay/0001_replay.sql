-- Shadows: processors that run over a part of the log into schemas of their own, beside the live ones.

CREATE TABLE shadows (
  name              text        COLLATE "C" PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,30}$'),
  processor         text        NOT NULL,
  processor_version text        NOT NULL,
  -- The file that a new version is read from, and its digest; null: the version that ships.
  version_file      text,
  version_digest    text,
  migrations_dir    text,
  -- What it is compared with: the live projection, or the version that ships, run over the same part of the log.
  compared_with     text        NOT NULL CHECK (compared_with IN ('live', 'baseline')),
  state             text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'ready', 'promoted')),
  -- Consumer groups that its runs read with, until the broker has let go of them.
  groups            text[]      NOT NULL DEFAULT '{}',
  -- The last comparison: counts per table, and where both stood.
  difference        jsonb,
  compared_at       timestamptz,
  accepted_at       timestamptz,
  accepted_by       text,
  accepted_reason   text,
  started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  started_by        text        NOT NULL
);

-- The part of the log: offsets from (inclusive) to (exclusive).
CREATE TABLE ranges (
  shadow      text    COLLATE "C" NOT NULL REFERENCES shadows ON DELETE CASCADE,
  topic       text    COLLATE "C" NOT NULL,
  partition   integer NOT NULL,
  from_offset bigint  NOT NULL CHECK (from_offset >= 0),
  to_offset   bigint  NOT NULL,
  PRIMARY KEY (shadow, topic, partition),
  CHECK (to_offset >= from_offset)
);

-- Who did what to a shadow, and who read recorded payloads to try an adapter on them (`shadow` is then its runtime). It
-- outlives the shadow. Rows are only added.
CREATE TABLE acts (
  id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  done_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  shadow  text        NOT NULL,
  act     text        NOT NULL CHECK (act IN ('started', 'resumed', 'accepted', 'promoted', 'dropped', 'evidence_read')),
  person  text        NOT NULL,
  tenant  text        NOT NULL,
  issuer  text        NOT NULL,
  reason  text,
  detail  jsonb       NOT NULL
);
CREATE INDEX acts_shadow ON acts (shadow, id);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'acts on shadows are a record: % is refused', TG_OP;
END
$$;
CREATE TRIGGER acts_no_change BEFORE UPDATE OR DELETE ON acts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER acts_no_truncate BEFORE TRUNCATE ON acts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
