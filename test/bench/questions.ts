import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { grantTenant, revokeTenant } from "../../services/analytics/analysts.ts";
import { bindQuestion } from "../../services/analytics/question.ts";
import { loadCostSettings, processorsWith } from "../../services/app/load-processors.ts";
import { openDirectProjector } from "../../services/app/project-directly.ts";
import { loadQuestions } from "../../services/app/sql-actions.ts";
import type { Config } from "../../services/platform/config.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { generateSessions } from "../../services/seed/session.ts";
import { toTenants } from "../../services/seed/world.ts";
import type { Bench, Row } from "./figure.ts";
import { toRow } from "./figure.ts";

/** Events of a seeded session, about. */
const eventsPerSession = 103;
const days = 90;
const startMs = Date.UTC(2026, 8, 1);
/** A month, as people ask; two of the three lie outside. */
const month = { since: "2026-11-01", until: "2026-11-30" };
const statementTimeoutMs = 3_600_000;
const prefix = "bench";
/** Row-level security costs some; a plan that it spoils costs far more than this. */
const mostRatio = 2;
const progressEvents = 500_000;

/** What the ten questions take over a month of the tenant with nine tenths of the rows, as an analyst and without RLS. */
export async function questions(bench: Bench): Promise<Row[]> {
  const target = await bench.database("questions");
  const admin = openDatabase({
    url: target.url,
    applicationName: "fabric-bench-questions",
    maxConnections: 1,
    statementTimeoutMs,
  });
  bench.onEnd(() => admin.end());
  const restore = await prepareBulkLoad(admin);
  await seed(bench, target.roleUrl("fabric_host"));
  bench.progress("indexes are built again");
  await restore();
  const [{ tenantId }] = toTenants(prefix);
  const analyst = await openAnalyst(bench, admin, target.url, tenantId);
  await admin.query("VACUUM (ANALYZE) audit.trail");
  await admin.query("VACUUM (ANALYZE) cost.usage");
  const found = await admin.query<{ call: string; person: string; resource: string; n: bigint }>(
    `SELECT tool_call_id AS call, user_id AS person, resource_ref AS resource,
       (SELECT reltuples::bigint FROM pg_class WHERE oid = 'audit.trail'::regclass) AS n
     FROM audit.trail WHERE event_type = 'agent.tool.authorized' AND tenant_id = $1 AND user_id IS NOT NULL LIMIT 1`,
    [tenantId],
  );
  const [sample] = found.rows;
  if (sample === undefined) throw new Error("the seeded history has no allowed call");
  const rows: Row[] = [];
  for (const question of await loadQuestions(join(bench.projectDir, "deploy", "questions"))) {
    const takes = new Set(question.parameters.map((one) => one.name));
    const given = {
      ...month,
      tenant: tenantId,
      call: sample.call,
      person: sample.person,
      resource: sample.resource,
    };
    const bound = bindQuestion(
      question,
      Object.fromEntries(Object.entries(given).filter(([name]) => takes.has(name))),
    );
    const ours: number[] = [];
    const theirs: number[] = [];
    // The first time each connection reads the catalogue, and what it needs from the disk.
    for (const one of [analyst, admin]) await timeOf(one, bound);
    for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
      ours.push(await timeOf(analyst, bound));
      theirs.push(await timeOf(admin, bound));
    }
    const plan = await savePlan(bench, question.name, analyst, bound);
    bench.progress(`${question.name}: ${ours.map((ms) => ms.toFixed(0)).join(", ")} ms`);
    // The steps of the plan without their figures; the whole of it is in the file.
    for (const line of toSteps(plan)) bench.progress(`  ${line}`);
    rows.push(
      toRow(
        {
          name: `questions.${question.name}`,
          unit: "ms",
          against: "peer",
          other: "the same without row-level security",
          target: { better: "lower", ratio: mostRatio },
          command: bench.command,
          note: `${String(sample.n)} rows in the trail, a month of the tenant with nine tenths of them; plan in .fabric/reports/questions/${question.name}.txt`,
        },
        ours,
        theirs,
      ),
    );
  }
  return rows;
}

/**
 * As for any load of ten million rows: a commit does not wait for the disk, and the trail's plain indexes go; those of the
 * ledger serve its processor. Puts all back when called.
 */
async function prepareBulkLoad(admin: Database): Promise<() => Promise<void>> {
  const { rows } = await admin.query<{ name: string; definition: string }>(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name, pg_get_indexdef(i.indexrelid) AS definition
     FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE NOT i.indisunique AND i.indrelid = 'audit.trail'::regclass`,
  );
  for (const { name } of rows) await admin.query(`DROP INDEX ${name}`);
  const database = (await admin.query<{ name: string }>("SELECT quote_ident(current_database()) AS name"))
    .rows[0]?.name;
  await admin.query(`ALTER DATABASE ${String(database)} SET synchronous_commit = off`);
  return async () => {
    await admin.query(`ALTER DATABASE ${String(database)} RESET synchronous_commit`);
    for (const { definition } of rows) await admin.query(definition);
  };
}

async function seed(bench: Bench, url: string): Promise<void> {
  const config = { cost: { pricesDir: undefined, budgetsFile: undefined } } as unknown as Config;
  const place = { packageDir: bench.projectDir, rootDir: bench.projectDir };
  const all = processorsWith(await loadCostSettings(config, place));
  const projector = openDirectProjector(
    url,
    all.filter((one) => one.name === "audit" || one.name === "cost"),
  );
  const sessions = Math.max(1, Math.round(bench.sizes.rows / eventsPerSession));
  let events = 0;
  for (const one of generateSessions({ seed: 1, sessions, startMs, days, tenantPrefix: prefix })) {
    await projector.add(one);
    if (Math.floor((events + one.length) / progressEvents) > Math.floor(events / progressEvents))
      bench.progress(`${String(events)} events seeded`);
    events += one.length;
  }
  await projector.end();
}

async function openAnalyst(bench: Bench, admin: Database, url: string, tenantId: string): Promise<Database> {
  const role = `bench_${randomBytes(5).toString("hex")}`;
  const password = randomBytes(12).toString("hex");
  await admin.query("INSERT INTO access.tenants (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING", [tenantId]);
  await admin.transaction((tx) => grantTenant(tx, { role, tenantId, password }));
  bench.onEnd(() => admin.transaction((tx) => revokeTenant(tx, { role, tenantId: undefined })));
  const address = new URL(url);
  address.username = role;
  address.password = password;
  const analyst = openDatabase({
    url: address.href,
    applicationName: role,
    maxConnections: 1,
    statementTimeoutMs,
  });
  bench.onEnd(() => analyst.end());
  return analyst;
}

interface Bound {
  readonly text: string;
  readonly values: readonly string[];
}

async function timeOf(database: Database, bound: Bound): Promise<number> {
  const startedMs = performance.now();
  await database.query(bound);
  return performance.now() - startedMs;
}

/** Lines that name a step of a plan, up to where their costs begin. */
function toSteps(plan: readonly string[]): string[] {
  return plan.flatMap((line) => {
    const at = line.indexOf("  (cost=");
    return at === -1 ? [] : [line.slice(0, at)];
  });
}

async function savePlan(
  bench: Bench,
  name: string,
  database: Database,
  bound: Bound,
): Promise<readonly string[]> {
  const { rows } = await database.query<{ "QUERY PLAN": string }>({
    text: `EXPLAIN (ANALYZE, BUFFERS) ${bound.text}`,
    values: bound.values,
  });
  const dir = join(bench.projectDir, ".fabric", "reports", "questions");
  await mkdir(dir, { recursive: true });
  const plan = rows.map((row) => row["QUERY PLAN"]);
  await writeFile(join(dir, `${name}.txt`), `${plan.join("\n")}\n`);
  return plan;
}
