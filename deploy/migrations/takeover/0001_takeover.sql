-- The queue of what waits for a person. Two ledgers of what happened, and the items that are made from them: an item's
-- row can be thrown away and made again, in whatever order the ledgers were filled.

-- Events that open an item, or close it without a person. Columns in the order in which the processor names them.
CREATE TABLE evidence (
  event_id        uuid        PRIMARY KEY,
  tenant_id       text        COLLATE "C" NOT NULL,
  cause           text        COLLATE "C" NOT NULL,
  -- Events of one key are one item, until it is closed.
  cause_key       text        COLLATE "C" NOT NULL,
  role            text        COLLATE "C" NOT NULL CHECK (role IN ('opens', 'closes')),
  event_type      text        NOT NULL,
  recorded_at     timestamptz NOT NULL,
  due_after_ms    bigint      NOT NULL CHECK (due_after_ms > 0),
  title           text        NOT NULL,
  correlation_id  text        NOT NULL,
  user_id         text,
  agent_id        text,
  runtime_kind    text        NOT NULL,
  session_id      text,
  tool_call_id    text,
  tool            text,
  action          text,
  resource_ref    text,
  risk            text,
  decision_id     text,
  reason_code     text,
  policy_revision text,
  matched_rules   text[]      NOT NULL,
  plan_digest     text,
  capability_id   text,
  approval_id     text,
  effect_id       text,
  receipt_id      text,
  -- A reference into the vault; the bytes are there and nowhere else.
  payload_ref     text,
  -- What the item's own event inherits: ids, actor, hop count.
  trigger         jsonb       NOT NULL
);
CREATE INDEX evidence_key ON evidence (tenant_id, cause, cause_key, role, recorded_at, event_id);

-- What people did with items, and the clock.
CREATE TABLE item_events (
  event_id      uuid        PRIMARY KEY,
  item_id       text        COLLATE "C" NOT NULL,
  tenant_id     text        COLLATE "C" NOT NULL,
  kind          text        NOT NULL CHECK (kind IN ('claimed', 'noted', 'reassigned', 'resolved', 'breached')),
  recorded_at   timestamptz NOT NULL,
  person        text,
  assigned_to   text,
  lease_ends_at timestamptz,
  note          text,
  outcome       text,
  proposal      text
);
CREATE INDEX item_events_item ON item_events (item_id, recorded_at);

CREATE TABLE items (
  -- `tko_` and a digest over tenant, cause, key and generation.
  item_id         text        COLLATE "C" PRIMARY KEY,
  tenant_id       text        COLLATE "C" NOT NULL,
  cause           text        COLLATE "C" NOT NULL,
  cause_key       text        COLLATE "C" NOT NULL,
  -- From 1; the same cause after the item was closed is the next one.
  generation      integer     NOT NULL CHECK (generation >= 1),
  state           text        NOT NULL CHECK (state IN ('open', 'claimed', 'resolved', 'settled')),
  title           text        NOT NULL,
  first_event_id  uuid        NOT NULL,
  correlation_id  text        NOT NULL,
  opened_at       timestamptz NOT NULL,
  last_seen_at    timestamptz NOT NULL,
  occurrences     bigint      NOT NULL,
  due_at          timestamptz NOT NULL,
  -- As events told; whether a lease holds right now is for desk.claims to say.
  assigned_to     text,
  lease_ends_at   timestamptz,
  notes           integer     NOT NULL,
  breached_at     timestamptz,
  closed_at       timestamptz,
  -- A person, or the type of the event that settled it.
  closed_by       text,
  outcome         text,
  proposal        text,
  resolution_note text,
  UNIQUE (tenant_id, cause, cause_key, generation)
);
CREATE INDEX items_waiting ON items (due_at) WHERE closed_at IS NULL;
CREATE INDEX items_recent ON items (tenant_id, opened_at);
