-- What happens to a right after it was issued: it is spent, taken back, or comes to its end.

-- Only this server's clock says when a right ends, and it ends soon: who looks for live rights need not look far back.
ALTER TABLE capabilities ADD CONSTRAINT capabilities_lifetime CHECK (expires_at <= issued_at + interval '1 hour');
ALTER TABLE capabilities ADD COLUMN revoked_by text;
ALTER TABLE capabilities ADD COLUMN revoke_reason text;
-- When an event said that it came to its end with calls left.
ALTER TABLE capabilities ADD COLUMN expired_at timestamptz;
-- Rights that a resource began to use. Most never are, because their runtime carries out the call itself: they cost
-- nothing here.
CREATE INDEX capabilities_begun ON capabilities (expires_at)
  WHERE calls_used > 0 AND calls_used < max_calls AND revoked_at IS NULL AND expired_at IS NULL;

-- One row per use. The key is the resource's own: the same one again is the same use.
CREATE TABLE capability_spends (
  capability_id   uuid NOT NULL REFERENCES capabilities,
  idempotency_key text NOT NULL,
  usage_id        uuid NOT NULL,
  calls           integer NOT NULL CHECK (calls > 0),
  -- Used up to and with this use.
  calls_used      integer NOT NULL,
  spent_by        text NOT NULL,
  spent_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (capability_id, idempotency_key)
);

-- Plans that may not be carried out, whoever asks. `digest` is a plan's digest, as frozen or as proposed.
CREATE TABLE revoked_plans (
  tenant_id  text NOT NULL,
  digest     text NOT NULL,
  until      timestamptz NOT NULL,
  reason     text NOT NULL,
  revoked_by text NOT NULL,
  revoked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, digest)
);
