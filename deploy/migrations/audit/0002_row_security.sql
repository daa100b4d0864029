SELECT access.protect('trail', 'tenant_id');

-- What analysts and auditors ask of months: one type in a span of time, and the life of one approval or right.
CREATE INDEX trail_type_time ON trail (tenant_id, event_type, recorded_at);
CREATE INDEX trail_approval ON trail (approval_id) WHERE approval_id IS NOT NULL;
CREATE INDEX trail_capability ON trail (capability_id) WHERE capability_id IS NOT NULL;
