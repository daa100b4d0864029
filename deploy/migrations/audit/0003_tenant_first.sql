-- An analyst's query has the tenants before all else: an index that begins with them is read alone, and not against the
-- one over times, which holds nearly every row of a large tenant.
DROP INDEX trail_approval;
DROP INDEX trail_capability;
CREATE INDEX trail_approval ON trail (tenant_id, approval_id) WHERE approval_id IS NOT NULL;
CREATE INDEX trail_capability ON trail (tenant_id, capability_id) WHERE capability_id IS NOT NULL;
