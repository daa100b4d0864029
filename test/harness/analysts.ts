import { randomBytes } from "node:crypto";
import { grantTenant, revokeTenant } from "../../services/analytics/analysts.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "./database.ts";

/** A login of its own in the analysts' group. */
export interface TestAnalyst {
  readonly role: string;
  readonly url: string;
  readonly sql: Database;
  /** Roles are the cluster's: one that stays would be there for every later test. */
  drop(): Promise<void>;
}

/** Makes an analyst by the product's own grant, reading `tenants`, which are added to the tenants served. */
export const createAnalyst = async (
  database: TestDatabase,
  tenants: readonly string[],
): Promise<TestAnalyst> => {
  const admin = openDatabase({ url: database.url, applicationName: "analyst-admin", maxConnections: 1 });
  const role = `analyst_${randomBytes(5).toString("hex")}`;
  const password = randomBytes(12).toString("hex");
  for (const tenantId of tenants) {
    await admin.query("INSERT INTO access.tenants (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING", [
      tenantId,
    ]);
    await admin.transaction((tx) => grantTenant(tx, { role, tenantId, password }));
  }
  const url = new URL(database.url);
  url.username = role;
  url.password = password;
  const sql = openDatabase({ url: url.href, applicationName: "analyst", maxConnections: 1 });
  return {
    role,
    url: url.href,
    sql,
    drop: async () => {
      await sql.end();
      await admin.transaction((tx) => revokeTenant(tx, { role, tenantId: undefined }));
      await admin.end();
    },
  };
};
