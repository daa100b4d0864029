-- A person stops a redrive under way, and lets it go on again; meanwhile its letters keep waiting for it.
ALTER TABLE redrives
  ADD COLUMN stopped_at  timestamptz,
  ADD COLUMN stopped_by  text,
  ADD COLUMN stop_reason text;
