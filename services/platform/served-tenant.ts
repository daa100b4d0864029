/**
 * A condition in SQL: the tenant that `column` names is served here, and neither it nor everything is frozen. Whoever asks
 * needs SELECT on `access.tenants` and `incidents.holds`.
 */
export const servedTenantSql = (column: string): string =>
  `(EXISTS (SELECT FROM access.tenants AS served WHERE served.tenant_id = ${column} AND served.state = 'active')
    AND NOT EXISTS (SELECT FROM incidents.holds AS hold
      WHERE hold.tenant_id IN (${column}, '*') AND hold.mode = 'frozen' AND hold.scope IN ('tenant', 'all')
        AND hold.lifted_at IS NULL AND (hold.until IS NULL OR hold.until > clock_timestamp())))`;
