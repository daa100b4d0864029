-- Who works on which item right now: the truth about claims, in the transaction of the claim. The projection of the queue
-- follows by events, and is a moment late.
CREATE TABLE claims (
  item_id       text        COLLATE "C" PRIMARY KEY,
  tenant_id     text        COLLATE "C" NOT NULL,
  held_by       text        NOT NULL,
  -- By the database's clock; past it anybody may take the item.
  lease_ends_at timestamptz NOT NULL,
  resolved_at   timestamptz
);

-- Items whose breach was announced, each once, whatever the number of desks.
CREATE TABLE breaches (
  item_id      text        COLLATE "C" PRIMARY KEY,
  tenant_id    text        COLLATE "C" NOT NULL,
  due_at       timestamptz NOT NULL,
  announced_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
