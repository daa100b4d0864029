-- Corrections of the ledger by their name: the truth about what was recorded under it, in the transaction of the event. The
-- same name again is the same correction, and with another content a mistake.
CREATE TABLE cost_corrections (
  tenant_id         text        COLLATE "C" NOT NULL,
  correction_id     text        COLLATE "C" NOT NULL,
  event_id          text        NOT NULL,
  corrects_event_id text,
  account           text        NOT NULL,
  amount_micros     bigint      NOT NULL,
  cause             text        NOT NULL,
  author            text        NOT NULL,
  recorded_at       timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, correction_id)
);
