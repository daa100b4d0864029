-- Months that a person closed: what was stated then stands for good. Entries of a closed month are as untouchable as all
-- others; what comes late for it shows as a difference, and the next month's statement carries it.
CREATE TABLE closings (
  tenant_id      text        COLLATE "C" NOT NULL,
  -- A UTC month such as 2026-11.
  period         text        COLLATE "C" NOT NULL,
  event_id       text        COLLATE "C" NOT NULL,
  closed_at      timestamptz NOT NULL,
  amount_micros  bigint      NOT NULL,
  -- Late amounts of months that were closed before, and that no statement had carried yet.
  carried_micros bigint      NOT NULL,
  calls          bigint      NOT NULL,
  unpriced_calls bigint      NOT NULL,
  closed_by      text        NOT NULL,
  note           text,
  PRIMARY KEY (tenant_id, period)
);
SELECT access.protect('closings', 'tenant_id');
