-- The audit trail: one plain row per event, in the order in which the log holds them per partition. Rows are only added.

CREATE TABLE trail (
  event_id        uuid        PRIMARY KEY,
  -- Where the event stands in the log: the order that blocks are sealed in.
  topic           text        COLLATE "C" NOT NULL,
  partition       integer     NOT NULL,
  kafka_offset    bigint      NOT NULL,
  tenant_id       text        COLLATE "C" NOT NULL,
  event_type      text        NOT NULL,
  schema_version  text        NOT NULL,
  occurred_at     timestamptz NOT NULL,
  recorded_at     timestamptz NOT NULL,
  environment     text        NOT NULL,
  -- Who.
  user_id         text,
  agent_id        text,
  runtime_kind    text        NOT NULL,
  adapter_version text        NOT NULL,
  runtime_version text,
  permission_mode text,
  sandbox         text,
  task_id         text,
  session_id      text,
  turn_id         text,
  tool_call_id    text,
  attempt         integer     NOT NULL,
  correlation_id  text        NOT NULL,
  causation_id    text,
  origin          text        NOT NULL,
  hop_count       integer     NOT NULL,
  automation_depth integer    NOT NULL,
  -- What.
  tool            text,
  action          text,
  resource_ref    text,
  data_class      text,
  -- Under which policy, by which right, to what end.
  policy_revision text,
  risk            text,
  decision        text,
  reason_code     text,
  matched_rules   text[],
  decision_id     text,
  capability_id   text,
  approval_id     text,
  plan_digest     text,
  effect_id       text,
  receipt_id      text,
  payload_ref     text,
  payload_digest  text,
  traceparent     text,
  summary         jsonb,
  -- SHA-256 over the canonical bytes of the row (processors/audit/row-digest.ts). Erasure blanks content, never digests.
  digest_version  smallint    NOT NULL,
  content_digest  bytea       NOT NULL CHECK (octet_length(content_digest) = 32),
  row_digest      bytea       NOT NULL CHECK (octet_length(row_digest) = 32),
  erased_at       timestamptz,
  UNIQUE (topic, partition, kafka_offset)
);
CREATE INDEX trail_tool_call ON trail (tool_call_id) WHERE tool_call_id IS NOT NULL;
CREATE INDEX trail_correlation ON trail (correlation_id);
CREATE INDEX trail_tenant_time ON trail (tenant_id, recorded_at);

-- Sealed blocks: per tenant a chain, each over the digests of its rows in (topic, partition, offset) order.
CREATE TABLE blocks (
  tenant_id       text        COLLATE "C" NOT NULL,
  block_number    bigint      NOT NULL CHECK (block_number >= 1),
  -- [{"topic", "partition", "from", "to", "rows"}]: offsets from (inclusive) to (exclusive), sorted.
  ranges          jsonb       NOT NULL,
  row_count       integer     NOT NULL CHECK (row_count >= 1),
  rows_digest     bytea       NOT NULL CHECK (octet_length(rows_digest) = 32),
  -- 16 bytes a row, in order: offset (8) and the first half of the row's digest (8). Names a row that is gone or changed.
  row_marks       bytea       NOT NULL,
  previous_digest bytea       NOT NULL CHECK (octet_length(previous_digest) = 32),
  block_digest    bytea       NOT NULL CHECK (octet_length(block_digest) = 32),
  digest_version  smallint    NOT NULL,
  key_id          text        NOT NULL,
  signature       bytea       NOT NULL CHECK (octet_length(signature) = 64),
  closed_at       timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, block_number)
);

-- Up to which offset each partition is sealed. The next blocks begin exactly here, so nothing is skipped.
CREATE TABLE frontiers (
  topic     text    COLLATE "C" NOT NULL,
  partition integer NOT NULL,
  sealed_to bigint  NOT NULL,
  PRIMARY KEY (topic, partition)
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit trail is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
END
$$;

-- The one change that a row may see: its content is blanked, once, and the digests stay.
CREATE FUNCTION refuse_change_but_erasure() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  blanked trail%ROWTYPE := OLD;
BEGIN
  blanked.user_id := NULL;
  blanked.resource_ref := NULL;
  blanked.payload_ref := NULL;
  blanked.payload_digest := NULL;
  blanked.summary := NULL;
  blanked.erased_at := NEW.erased_at;
  IF OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND NEW IS NOT DISTINCT FROM blanked THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'the audit trail is append-only: only an erasure may blank content, once';
END
$$;

CREATE TRIGGER trail_no_update BEFORE UPDATE ON trail FOR EACH ROW EXECUTE FUNCTION refuse_change_but_erasure();
CREATE TRIGGER trail_no_delete BEFORE DELETE ON trail FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER trail_no_truncate BEFORE TRUNCATE ON trail FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER blocks_no_change BEFORE UPDATE OR DELETE ON blocks FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER blocks_no_truncate BEFORE TRUNCATE ON blocks FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
