SELECT access.protect('traces', 'tenant_id');
SELECT access.protect('spans', 'tenant_id');
SELECT access.protect('causes', 'tenant_id');
SELECT access.protect('deliveries', 'tenant_id');
