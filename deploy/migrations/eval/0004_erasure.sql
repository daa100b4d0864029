-- What an erased tenant's people and tools wrote is blank, whatever comes first: the fact or the erasure. Numbers, decisions
-- and digests stay.
CREATE TABLE erasures (
  event_id     uuid        PRIMARY KEY,
  tenant_id    text        COLLATE "C" NOT NULL,
  erased_until timestamptz NOT NULL
);
CREATE INDEX erasures_tenant ON erasures (tenant_id, erased_until);
SELECT access.protect('erasures', 'tenant_id');
CREATE INDEX facts_tenant ON facts (tenant_id, recorded_at);

-- A folder ties episodes together by its digest; its name is in the facts alone.
UPDATE links SET link = concat_ws(E'\x1f', 'folder', split_part(link, E'\x1f', 2),
    encode(sha256(convert_to(tenant_id || E'\x1f' || split_part(link, E'\x1f', 3), 'UTF8')), 'hex'))
  WHERE link LIKE E'folder\x1f%';
