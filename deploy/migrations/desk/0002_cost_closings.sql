-- Statements of closed months: the truth about whether a month is closed, in the transaction of the closing. The ledger
-- follows by events, and is a moment late.
CREATE TABLE cost_closings (
  tenant_id      text        COLLATE "C" NOT NULL,
  period         text        COLLATE "C" NOT NULL CHECK (period ~ '^\d{4}-(0[1-9]|1[0-2])$'),
  event_id       text        NOT NULL,
  amount_micros  bigint      NOT NULL,
  carried_micros bigint      NOT NULL,
  calls          bigint      NOT NULL,
  unpriced_calls bigint      NOT NULL,
  closed_by      text        NOT NULL,
  note           text,
  closed_at      timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, period)
);
