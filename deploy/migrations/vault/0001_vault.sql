-- Raw payloads, sealed. Nothing here can be read without the tenant's data key, and that key is wrapped.

CREATE TABLE tenant_keys (
  tenant_id   text NOT NULL,
  key_version integer NOT NULL DEFAULT 1,
  -- Names the key-encryption key that wrapped this one.
  kek_id      text NOT NULL,
  -- nonce (12) + tag (16) + ciphertext (32) of the data key.
  wrapped_key bytea NOT NULL CHECK (octet_length(wrapped_key) = 60),
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, key_version)
);

CREATE TABLE evidence (
  evidence_id uuid PRIMARY KEY,
  tenant_id   text NOT NULL,
  key_version integer NOT NULL,
  data_class  text NOT NULL CHECK (data_class IN ('unknown', 'public', 'internal', 'confidential', 'secret')),
  -- hmac-sha256 under a key derived from the tenant's data key: a plain hash of a small secret can be guessed.
  digest      bytea NOT NULL CHECK (octet_length(digest) = 32),
  nonce       bytea NOT NULL CHECK (octet_length(nonce) = 12),
  tag         bytea NOT NULL CHECK (octet_length(tag) = 16),
  sealed      bytea NOT NULL,
  size_bytes  integer NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Ciphertext does not shrink: no time is spent on trying.
ALTER TABLE evidence ALTER COLUMN sealed SET STORAGE EXTERNAL;
-- Retention runs by class and age.
CREATE INDEX evidence_retention ON evidence (data_class, created_at);
