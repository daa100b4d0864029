SELECT access.protect('usage', 'tenant_id');
SELECT access.protect('budget_state', 'tenant_id');
SELECT access.protect_by_parent('entries', 'usage', 'event_id');
