SELECT access.protect('items', 'tenant_id');
SELECT access.protect('item_events', 'tenant_id');
SELECT access.protect('evidence', 'tenant_id');
