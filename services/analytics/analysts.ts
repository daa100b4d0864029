import { Fault } from "../../schemas/faults.ts";
import type { Tx } from "../platform/postgres.ts";

/** The group role that may read the views; analysts are its members. */
export const analystGroup = "fabric_analyst";

/** One tenant that one analyst reads. */
export interface AnalystGrant {
  readonly role_name: string;
  readonly tenant_id: string;
  readonly granted_at: Date;
  readonly granted_by: string;
  /** False when the role is gone from the cluster and the grant is still there. */
  readonly can_login: boolean;
}

const roleName = /^[a-z][a-z0-9_]{0,62}$/;
/** An analyst's question may take this long; the views are read by people, and services share the database. */
const statementTimeoutMs = 120_000;
const maxConnections = 5;

/** Settings of a new login; conveniences, and no protection: an analyst can change them. */
const roleSettings = [
  `search_path TO analytics`,
  `default_transaction_read_only TO on`,
  `statement_timeout TO ${String(statementTimeoutMs)}`,
];

/**
 * Lets a login role read one tenant's rows, and makes the role where it is missing. A role that has rights of other kinds
 * is refused: what it reads would not be bounded by its grants. Returns whether the role is new; `password` is then its.
 */
export async function grantTenant(
  tx: Tx,
  grant: { readonly role: string; readonly tenantId: string; readonly password: string },
): Promise<{ readonly isNew: boolean }> {
  if (grant.role !== analystGroup) assertName(grant.role);
  const known = await tx.query("SELECT FROM access.tenants WHERE tenant_id = $1", [grant.tenantId]);
  if (known.rowCount === 0) throw new Fault("USAGE", `tenant \`${grant.tenantId}\` is not served here`);
  const isNew = grant.role !== analystGroup && !(await assertPlainAnalyst(tx, grant.role));
  if (isNew) {
    await tx.query(
      `CREATE ROLE ${grant.role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS
        CONNECTION LIMIT ${String(maxConnections)} IN ROLE ${analystGroup} PASSWORD ${await quoted(tx, grant.password)}`,
    );
    for (const setting of roleSettings) await tx.query(`ALTER ROLE ${grant.role} SET ${setting}`);
  }
  await tx.query(
    "INSERT INTO access.analyst_tenants (role_name, tenant_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    [grant.role, grant.tenantId],
  );
  return { isNew };
}

/** Takes one tenant away, or all of them and the role with them. Returns how many grants ended. */
export async function revokeTenant(
  tx: Tx,
  revoke: { readonly role: string; readonly tenantId: string | undefined },
): Promise<number> {
  if (revoke.role !== analystGroup) assertName(revoke.role);
  const gone = await tx.query(
    "DELETE FROM access.analyst_tenants WHERE role_name = $1 AND ($2::text IS NULL OR tenant_id = $2)",
    [revoke.role, revoke.tenantId ?? null],
  );
  if (revoke.tenantId !== undefined || revoke.role === analystGroup) return gone.rowCount;
  if (await assertPlainAnalyst(tx, revoke.role)) {
    // Who is connected would read on to the end of the session; temporary things of that session go with it.
    await tx.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [
      revoke.role,
    ]);
    await tx.query(`DROP OWNED BY ${revoke.role} CASCADE`);
    await tx.query(`DROP ROLE ${revoke.role}`);
  }
  return gone.rowCount;
}

/** Who reads what. */
export async function listAnalysts(tx: Tx): Promise<readonly AnalystGrant[]> {
  const { rows } = await tx.query<AnalystGrant>(
    `SELECT g.role_name, g.tenant_id, g.granted_at, g.granted_by, coalesce(r.rolcanlogin, false) AS can_login
     FROM access.analyst_tenants AS g LEFT JOIN pg_roles AS r ON r.rolname = g.role_name
     ORDER BY g.role_name, g.tenant_id`,
  );
  return rows;
}

function assertName(role: string): void {
  if (!roleName.test(role) || role.startsWith("pg_") || role.startsWith("fabric_"))
    throw new Fault(
      "USAGE",
      `\`${role}\` is no name for an analyst: lower case letters, digits and _, at most 63, and neither fabric_… nor pg_…`,
    );
}

/** Whether the role exists; throws when it is more than an analyst. */
async function assertPlainAnalyst(tx: Tx, role: string): Promise<boolean> {
  const { rows } = await tx.query<{ is_strong: boolean; groups: string[] }>(
    `SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication AS is_strong,
       ARRAY(SELECT g.rolname::text FROM pg_auth_members AS m JOIN pg_roles AS g ON g.oid = m.roleid WHERE m.member = r.oid) AS groups
     FROM pg_roles AS r WHERE rolname = $1`,
    [role],
  );
  const [found] = rows;
  if (found === undefined) return false;
  if (found.is_strong || found.groups.join() !== analystGroup)
    throw new Fault(
      "USAGE",
      `role \`${role}\` exists and is more or else than an analyst; name another one, or make it a member of ${analystGroup} alone`,
    );
  return true;
}

/** A literal for statements that take no parameters; the server quotes. */
async function quoted(tx: Tx, text: string): Promise<string> {
  const { rows } = await tx.query<{ literal: string }>("SELECT quote_literal($1) AS literal", [text]);
  const [row] = rows;
  if (row === undefined) throw new Fault("INTERNAL", "the database quoted nothing");
  return row.literal;
}
