-- A parked row is put back into the outbox, or put away for good, by a person; what was put away stays to be looked at.
ALTER TABLE parked
  ADD COLUMN archived_at timestamptz,
  ADD COLUMN archived_by text,
  ADD COLUMN archive_reason text;
