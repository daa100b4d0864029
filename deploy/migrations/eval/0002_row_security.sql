SELECT access.protect('facts', 'tenant_id');
SELECT access.protect('labels', 'tenant_id');
SELECT access.protect('links', 'tenant_id');
SELECT access.protect('totals', 'tenant_id');
SELECT access.protect('episodes', 'tenant_id');
