-- Deliveries that were projected in one batch: the consume span of each links to the producing spans of the others.
ALTER TABLE deliveries ADD COLUMN batch_id uuid;
CREATE INDEX deliveries_batch ON deliveries (tenant_id, batch_id) WHERE batch_id IS NOT NULL;
