-- When the host took a record up: between the sending and this lie broker and fetch, between this and the projection the
-- consumer's own work. Null: not told.
ALTER TABLE deliveries ADD COLUMN received_at timestamptz;
