import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grantTenant, listAnalysts, revokeTenant } from "../../services/analytics/analysts.ts";
import { openDirectProjector } from "../../services/app/project-directly.ts";
import { loadCostSettings, processorsWith } from "../../services/app/load-processors.ts";
import type { Config } from "../../services/platform/config.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { generateSessions } from "../../services/seed/session.ts";
import type { TestAnalyst } from "../harness/analysts.ts";
import { createAnalyst } from "../harness/analysts.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { projectDir } from "../harness/stack.ts";

const big = "seed-big";
let test: TestDatabase;
let admin: Database;
let ann: TestAnalyst;
let nobody: TestAnalyst;
let small: string;

beforeAll(async () => {
  test = await createTestDatabase();
  admin = openDatabase({ url: test.url, applicationName: "analysts-test", maxConnections: 2 });
  const config = { cost: { pricesDir: undefined, budgetsFile: undefined } } as unknown as Config;
  const processors = processorsWith(
    await loadCostSettings(config, { packageDir: projectDir, rootDir: projectDir }),
  );
  const projector = openDirectProjector(test.roleUrl("fabric_host"), processors);
  const plan = { seed: 3, sessions: 60, startMs: Date.UTC(2026, 8, 1), days: 30, tenantPrefix: "seed" };
  for (const events of generateSessions(plan)) await projector.add(events);
  await projector.end();
  const { rows } = await admin.query<{ tenant_id: string }>(
    "SELECT tenant_id FROM audit.trail WHERE tenant_id <> $1 GROUP BY tenant_id ORDER BY count(*) DESC LIMIT 1",
    [big],
  );
  small = rows[0]?.tenant_id ?? "";
  ann = await createAnalyst(test, [small]);
  nobody = await createAnalyst(test, ["other"]);
});
afterAll(async () => {
  await ann.drop();
  await nobody.drop();
  await admin.end();
  await test.drop();
});

const numberOf = async (database: Database, sql: string, values: readonly unknown[] = []): Promise<number> =>
  Number((await database.query<{ n: bigint }>(sql, values)).rows[0]?.n);
const views = async (): Promise<string[]> =>
  (
    await admin.query<{ name: string }>(
      "SELECT viewname AS name FROM pg_views WHERE schemaname = 'analytics' ORDER BY 1",
    )
  ).rows.map((row) => row.name);

describe("an analyst", () => {
  it("reads exactly the rows of the granted tenant, in every view", async () => {
    for (const view of await views()) {
      const all = await numberOf(admin, `SELECT count(*) AS n FROM analytics.${view} WHERE tenant_id = $1`, [
        small,
      ]);
      expect([view, await numberOf(ann.sql, `SELECT count(*) AS n FROM analytics.${view}`)]).toEqual([
        view,
        all,
      ]);
      expect([view, await numberOf(nobody.sql, `SELECT count(*) AS n FROM analytics.${view}`)]).toEqual([
        view,
        0,
      ]);
    }
    expect(await numberOf(ann.sql, "SELECT count(*) AS n FROM analytics.audit_trail")).toBeGreaterThan(20);
  });

  it("is not told where raw payloads lie, as at the desk, whatever it sets; an auditor is", async () => {
    const told = (view: string) =>
      `SELECT count(payload_ref) AS n FROM analytics.${view} WHERE tenant_id = $1`;
    const auditor = openDatabase({
      url: test.roleUrl("fabric_auditor"),
      applicationName: "analysts-test",
      maxConnections: 1,
    });
    for (const view of ["audit_trail", "story"]) {
      expect(await numberOf(auditor, told(view), [small])).toBeGreaterThan(0);
      expect(await numberOf(ann.sql, told(view), [small])).toBe(0);
    }
    await auditor.end();
    await expect(ann.sql.query("SET ROLE fabric_auditor")).rejects.toThrow(/permission denied/);
  });

  it("sees no other tenant by a setting, another role or a function of its own", async () => {
    const foreign = "SELECT count(*) AS n FROM analytics.audit_trail WHERE tenant_id = 'seed-big'";
    for (const setting of [
      "SET row_security = off",
      "SET app.tenant = 'seed-big'",
      "SET ROLE fabric_analyst",
      "SET default_transaction_read_only = off",
    ]) {
      await ann.sql.connected(async (tx) => {
        await tx.query(setting);
        const seen = await tx.query<{ n: bigint }>(foreign).then(
          ({ rows }) => rows[0]?.n,
          (error: unknown) => {
            expect(String(error)).toMatch(/row-level security/);
            return 0n;
          },
        );
        expect([setting, seen]).toEqual([setting, 0n]);
        await tx.query("RESET ALL");
        await tx.query("RESET ROLE");
      });
    }
    for (const refused of [
      "SET ROLE fabric_auditor",
      "SET ROLE fabric_host",
      "SET SESSION AUTHORIZATION fabric_auditor",
    ])
      await expect(ann.sql.query(refused)).rejects.toThrow(/permission denied/);
    const spied = await ann.sql.connected(async (tx) => {
      await tx.query("SET default_transaction_read_only = off");
      await tx.query("CREATE TEMP TABLE spied (who text)");
      await tx.query(
        `CREATE FUNCTION pg_temp.spy(who text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS
          'BEGIN INSERT INTO pg_temp.spied VALUES (who); RETURN true; END'`,
      );
      await tx.query("SELECT count(*) FROM analytics.audit_trail WHERE pg_temp.spy(tenant_id)");
      await tx.query("SELECT count(*) FROM analytics.cost_entries WHERE pg_temp.spy(event_id)");
      const { rows } = await tx.query<{ n: bigint; foreign: bigint }>(
        `SELECT count(*) AS n, count(*) FILTER (WHERE who LIKE 'seed-%' AND who <> $1) AS foreign FROM pg_temp.spied`,
        [small],
      );
      await tx.query("RESET ALL");
      return rows[0];
    });
    expect(spied?.foreign).toBe(0n);
    expect(Number(spied?.n)).toBe(
      (await numberOf(ann.sql, "SELECT count(*) AS n FROM analytics.audit_trail")) +
        (await numberOf(ann.sql, "SELECT count(*) AS n FROM analytics.cost_entries")),
    );
  });

  it("is refused every table, sequence and function outside of the views, and every change", async () => {
    const { rows } = await admin.query<{ name: string }>(
      `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind IN ('r', 'v', 'm', 'p', 'S') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'analytics')
         AND n.nspname NOT LIKE 'pg\\_%'`,
    );
    expect(rows.length).toBeGreaterThan(30);
    for (const { name } of rows)
      await expect(ann.sql.query(`SELECT FROM ${name} LIMIT 1`), name).rejects.toThrow(/permission denied/);
    const functions = await admin.query<{ name: string }>(
      `SELECT p.oid::regprocedure::text AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
         AND has_schema_privilege($1, n.oid, 'USAGE') AND has_function_privilege($1, p.oid, 'EXECUTE')`,
      [ann.role],
    );
    expect(functions.rows).toEqual([]);
    await expect(ann.sql.query("SELECT access.reader_tenants()")).rejects.toThrow(/permission denied/);
    for (const change of [
      "INSERT INTO access.analyst_tenants (role_name, tenant_id) VALUES (session_user, 'seed-big')",
      "UPDATE analytics.audit_trail SET user_id = 'x'",
      "CREATE TABLE analytics.mine (n int)",
      "CREATE TABLE public.mine (n int)",
    ])
      await expect(
        ann.sql.connected(async (tx) => {
          await tx.query("SET default_transaction_read_only = off");
          await tx.query(change).finally(() => tx.query("RESET ALL"));
        }),
        change,
      ).rejects.toThrow(/permission denied|cannot update view/);
  });

  it("is granted and taken away by name, and nobody who has other rights becomes one", async () => {
    const work = (tenantId: string, role = ann.role) =>
      admin.transaction((tx) => grantTenant(tx, { role, tenantId, password: "unused" }));
    await admin.query("INSERT INTO access.tenants (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING", [big]);
    expect(await work(big)).toEqual({ isNew: false });
    const tenants = "SELECT count(DISTINCT tenant_id) AS n FROM analytics.audit_trail";
    expect(await numberOf(ann.sql, tenants)).toBe(2);
    const listed = (await listAnalysts(admin)).filter((one) => one.role_name === ann.role);
    expect(listed.map((one) => [one.tenant_id, one.can_login]).sort()).toEqual(
      [
        [big, true],
        [small, true],
      ].sort(),
    );
    expect(await admin.transaction((tx) => revokeTenant(tx, { role: ann.role, tenantId: big }))).toBe(1);
    expect(await numberOf(ann.sql, tenants)).toBe(1);
    await expect(work("no-such-tenant")).rejects.toThrow(/not served here/);
    await expect(work(big, "fabric_host")).rejects.toThrow(/no name for an analyst/);
    await expect(work(big, "postgres; DROP ROLE x")).rejects.toThrow(/no name for an analyst/);
    const owner = (await admin.query<{ name: string }>("SELECT session_user AS name")).rows[0]?.name ?? "";
    await expect(work(big, owner)).rejects.toThrow(/more or else than an analyst/);
  });
});

describe("every table below a view of analytics", () => {
  it("has row-level security that is forced, with a policy for services and one for analysts", async () => {
    const { rows } = await admin.query<{ name: string; forced: boolean; policies: string[] }>(
      `SELECT DISTINCT t.oid::regclass::text AS name, t.relrowsecurity AND t.relforcerowsecurity AS forced,
         ARRAY(SELECT polname::text FROM pg_policy WHERE polrelid = t.oid ORDER BY 1) AS policies
       FROM pg_class v JOIN pg_namespace n ON n.oid = v.relnamespace
         JOIN pg_rewrite r ON r.ev_class = v.oid JOIN pg_depend d ON d.objid = r.oid AND d.classid = 'pg_rewrite'::regclass
         JOIN pg_class t ON t.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass AND t.relkind IN ('r', 'p')
       WHERE n.nspname = 'analytics' AND v.relkind = 'v' ORDER BY 1`,
    );
    expect(rows.map((row) => row.name)).toContain("audit.trail");
    const policies = ["analysts_see_their_tenants", "services_span_tenants"];
    expect(rows.filter((row) => !row.forced || row.policies.join() !== policies.join())).toEqual([]);
  });

  it("shows every row to each service that has a right to it: none is forgotten by the policy", async () => {
    const { rows } = await admin.query(
      `SELECT DISTINCT c.oid::regclass::text AS name, g.grantee::regrole::text AS role
       FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) AS g
       WHERE c.relrowsecurity AND g.grantee <> c.relowner AND g.grantee <> 'fabric_analyst'::regrole AND NOT EXISTS (
         SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'services_span_tenants' AND g.grantee = ANY (p.polroles))`,
    );
    expect(rows).toEqual([]);
  });

  it("is read with the reader's rights: each view is a security invoker", async () => {
    const { rows } = await admin.query(
      `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = 'analytics' AND c.relkind = 'v' AND NOT coalesce('security_invoker=true' = ANY (c.reloptions), false)`,
    );
    expect(rows).toEqual([]);
  });

  it("stays one for services, which see all tenants", async () => {
    const auditor = openDatabase({
      url: test.roleUrl("fabric_auditor"),
      applicationName: "auditor",
      maxConnections: 1,
    });
    const all = "SELECT count(*) AS n FROM analytics.audit_trail";
    expect(await numberOf(auditor, all)).toBe(await numberOf(admin, "SELECT count(*) AS n FROM audit.trail"));
    await auditor.end();
  });
});
