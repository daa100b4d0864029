import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { toBudgetFacts } from "../../processors/cost/budget-facts.ts";
import type { Budget } from "../../processors/cost/budgets.ts";
import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import { findAnomalies, loadBudgets } from "../../processors/cost/queries.ts";
import { loadBookedMonths } from "../../processors/cost/closings.ts";
import { loadEvidence } from "../../processors/takeover/queries.ts";
import { eventOf } from "../../processors/kit/given.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { loadCorrectedCall } from "../../services/app/corrected-call.ts";
import { costActions } from "../../services/app/cost-actions.ts";
import type { Actions } from "../../services/cli/actions.ts";
import { runCommandLine } from "../../services/cli/program.ts";
import { announceAnomalies, lastClosedDay } from "../../services/cost-watch/announce-anomalies.ts";
import { reportFacts } from "../../services/cost-watch/report-facts.ts";
import type { Desk } from "../../services/desk/server.ts";
import { createDesk } from "../../services/desk/server.ts";
import { factAccess, registerFactRoutes } from "../../services/gate/fact-routes.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { loadConfig } from "../../services/platform/config.ts";
import { createHttpServer } from "../../services/platform/http.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";
import { memoryCodec } from "../harness/memory-codec.ts";

const list = (models: string) =>
  `currency: USD\nmodels:\n  - { model: large, valid_from: 2020-01-01, source: t, input_micros_per_million: 1000000, output_micros_per_million: 2000000 }\n${models}`;
const repriced =
  "  - { model: unheard-of, valid_from: 2020-01-01, listed_at: 2999-12-24, source: t, input_micros_per_million: 4000000, output_micros_per_million: 4000000 }\n";
const budget: Budget = {
  id: "month",
  tenant: "*",
  scope: "tenant",
  scopeId: "*",
  period: "month",
  softMicros: 1_000_000n,
  hardMicros: 5_000_000n,
};
const parsed = parsePrices([{ file: "prices.yaml", text: list("") }]);
if (!parsed.ok) throw new Error(parsed.problems.join("\n"));
const byUser: Budget = {
  ...budget,
  id: "person-day",
  scope: "user",
  period: "day",
  softMicros: 6_000_000n,
  hardMicros: null,
};
const cost = createCost({ prices: parsed.prices, budgets: [budget, byUser] });

const today = new Date().toISOString().slice(0, 10);
const log = createLog({ service: "cost-test", level: "silent" });
const codec = memoryCodec();
let database: TestDatabase;
let home: string;
let host: Database;
let desk: Database;
let gate: Database;
let server: Desk;
let deskUrl: string;
const as = (role: string, searchPath: string[] = []): Database =>
  openDatabase({ url: database.roleUrl(role), applicationName: role, searchPath, maxConnections: 2 });

beforeAll(async () => {
  database = await createTestDatabase();
  home = await mkdtemp(join(tmpdir(), "cost-"));
  [host, desk, gate] = [as("fabric_host", ["cost"]), as("fabric_desk"), as("fabric_gate")];
  server = createDesk({
    database: desk,
    codec,
    clock: systemClock,
    environment: "test",
    log,
    metrics: createMetrics(),
    authenticator: {
      // A token says who and what: `role.tenant`.
      authenticate: (token) => {
        const [role = "", tenantId = ""] = token.split(".");
        return Promise.resolve({ tenantId, subject: "eve", roles: [role as "admin"], issuer: "test" });
      },
    },
    loadEvidence,
    loadCorrectedCall,
    loadBookedMonths,
    probes: {},
  });
  deskUrl = await server.app.listen({ host: "127.0.0.1", port: 0 });
  await writeFile(join(home, "admin"), "admin.acme");
  await writeFile(join(home, "runtime"), "runtime.acme");
  await writeFile(join(home, "prices.yaml"), list(repriced));
  await writeFile(join(home, "budgets.yml"), "currency: USD\nbudgets: []\n");
});
afterEach(async () => {
  const owner = openDatabase({ url: database.url, applicationName: "cost-test", maxConnections: 1 });
  await owner.query(
    `TRUNCATE cost.usage, cost.entries, cost.budget_state, cost.closings, desk.cost_closings, outbox.events,
      gate.dated_facts`,
  );
  await owner.end();
});
afterAll(async () => {
  await server.close();
  for (const one of [host, desk, gate]) await one.end();
  await database.drop();
  await rm(home, { recursive: true, force: true });
});

const model = (name: string, tokens: bigint, day = today): Envelope =>
  eventOf(
    draft("agent.model.completed", {
      model: name,
      outcome: "succeeded",
      input_tokens: tokens,
      cached_input_tokens: null,
      cache_write_tokens: null,
      output_tokens: null,
      reasoning_tokens: null,
      duration_ms: null,
      cost_micros: null,
      error_kind: null,
      model_call_id: null,
    }),
    {
      eventId: `evt_${newUuidV7(Date.now())}`,
      recordedAtMs: Date.parse(`${day}T12:00:00Z`),
      userId: "ann",
      correlationId: "cor_1",
    },
  );
async function book(events: readonly Envelope[]): Promise<void> {
  await host.transaction(async (tx) => {
    const changes = events.flatMap((event) =>
      cost.project(event, { topic: event.type, partition: 0, offset: 0n }),
    );
    await cost.apply(tx, changes);
  });
}
/** A call as one of its reporters tells it. */
const reported = (claim: bigint | null, at = "12:00:00"): Envelope => {
  const event = model("unheard-of", 250_000n);
  const summary = { ...event.redacted_summary, model_call_id: "api:1", cost_micros: claim };
  const recordedAt = Date.parse(`${today}T${at}Z`);
  return { ...event, recorded_at: recordedAt, redacted_summary: summary } as unknown as Envelope;
};
const countedMicros = async (): Promise<bigint[]> => {
  const found = await owned((owner) =>
    owner.query<{ amount_micros: bigint }>(
      "SELECT amount_micros FROM cost.usage WHERE is_counted ORDER BY amount_micros",
    ),
  );
  return found.rows.map((row) => row.amount_micros);
};
async function said(): Promise<Envelope[]> {
  const owner = openDatabase({ url: database.url, applicationName: "cost-test", maxConnections: 1 });
  const found = await owner.query<{ payload: Buffer }>("SELECT payload FROM outbox.events ORDER BY seq");
  await owner.end();
  return Promise.all(found.rows.map(async ({ payload }) => (await codec.decode(payload)).envelope));
}

async function owned<T>(work: (owner: Database) => Promise<T>): Promise<T> {
  const owner = openDatabase({ url: database.url, applicationName: "cost-test", maxConnections: 1 });
  try {
    return await work(owner);
  } finally {
    await owner.end();
  }
}

/** A command line, as somebody types it. */
async function run(...argv: string[]) {
  let [stdout, stderr] = ["", ""];
  const config = loadConfig({
    env: {
      FABRIC_KAFKA_BROKERS: "127.0.0.1:1",
      FABRIC_REGISTRY_URL: "http://127.0.0.1:1",
      FABRIC_DATABASE_URL_AUDITOR: database.roleUrl("fabric_auditor"),
      FABRIC_DESK_URL: deskUrl,
      FABRIC_PRICES_DIR: home,
      FABRIC_BUDGETS_FILE: join(home, "budgets.yml"),
    },
  });
  const actions = costActions({ packageDir: home, rootDir: home }, () => Promise.resolve(config));
  const exit = await runCommandLine(argv, actions as unknown as Actions, {
    stdout: (text) => (stdout += text),
    stderr: (text) => (stderr += text),
    readStdin: () => Promise.resolve(""),
    colour: false,
    signal: new AbortController().signal,
    version: "0",
    askSecret: () => Promise.reject(new Error("nobody is there")),
  });
  return { exit, stdout, stderr };
}
const reportOf = async (...argv: string[]) =>
  JSON.parse((await run("--json", "cost", "report", "--period", "2026-11", ...argv)).stdout) as {
    lines: { key: string; amount_micros: number; unpriced_calls: number }[];
    total: { amount_micros: number; unpriced_calls: number };
  };

describe("fabric cost", () => {
  it("reports a period by a dimension, as a table and as one JSON document", async () => {
    await book([
      model("large", 2_500_000n, "2026-11-30"),
      model("unheard-of", 10n, "2026-11-29"),
      model("large", 9n, "2026-12-01"),
      model("large", 9n, "2026-10-31"),
    ]);
    const { lines, total } = await reportOf("--by", "model");
    expect(lines.map((one) => [one.key, one.amount_micros, one.unpriced_calls])).toEqual([
      ["large", 2_500_000, 0],
      ["unheard-of", 0, 1],
    ]);
    expect(total).toMatchObject({ amount_micros: 2_500_000, unpriced_calls: 1 });
    const text = await run("cost", "report", "--by", "day", "--period", "2026-11");
    expect(text.stdout).toMatch(/2026-11-30 +2\.500000/);
    expect(text.stdout).toContain("fabric cost reprice");
    expect((await run("cost", "report", "--period", "2026-31")).exit).toBe(2);
    expect((await run("cost", "report", "--by", "moon")).exit).toBe(2);
    expect((await reportOf("--tenant", "globex")).total.amount_micros).toBe(0);
  });

  it("corrects by an entry of its own, as a person with the role, and only a cost of the tenant", async () => {
    const call = model("large", 2_000_000n);
    await book([call]);
    const correct = (token: string, event = call.event_id) =>
      run(
        ...["cost", "correct", "--event", event, "--amount-micros", "-500000", "--cause", "refund"],
        ...["--id", "invoice-7", "--token-file", join(home, token)],
      );
    expect((await correct("runtime")).exit).toBe(4);
    expect((await correct("admin", `evt_${newUuidV7(1)}`)).stderr).toMatch(/COST_UNKNOWN/);
    expect((await correct("admin")).exit).toBe(0);
    expect((await correct("admin")).exit).toBe(0);
    const events = await said();
    expect(events).toMatchObject([
      {
        type: "fabric.cost.corrected",
        origin: "human",
        correlation_id: "cor_1",
        redacted_summary: { correction_id: "invoice-7", corrects_event_id: call.event_id, author: "eve" },
      },
    ]);
    await book(events);
    const corrected = await run("--json", "cost", "report", "--by", "user", "--period", "3650d");
    expect(JSON.parse(corrected.stdout)).toMatchObject({
      lines: [{ key: "ann", amount_micros: 1_500_000, corrections_micros: -500_000 }],
    });
  });

  it("reprices calls of a price that came later, once, and says what has none still", async () => {
    await book([model("unheard-of", 1_000_000n), model("nameless", 5n)]);
    const reprice = (...more: string[]) =>
      run("--json", "cost", "reprice", "--token-file", join(home, "admin"), ...more);
    const dry = await reprice("--dry-run");
    expect(JSON.parse(dry.stdout)).toEqual({
      repriced: 1,
      amount_micros: 4_000_000,
      without_price: 1,
      dry_run: true,
    });
    expect(await said()).toEqual([]);
    await reprice();
    await reprice();
    const events = await said();
    expect(events).toHaveLength(1);
    await book(events);
    expect(JSON.parse((await reprice()).stdout)).toMatchObject({ repriced: 0, without_price: 1 });
    const all = await run("--json", "cost", "report", "--by", "model", "--period", "3650d");
    expect(JSON.parse(all.stdout)).toMatchObject({
      total: { amount_micros: 4_000_000, unpriced_calls: 1 },
    });
  });

  it("checks the price list and the budgets, and names file and line of a fault", async () => {
    expect((await run("cost", "check")).stdout).toMatch(/2 prices of models/);
    await writeFile(join(home, "broken.yaml"), list(repriced));
    const broken = await run("cost", "check");
    await rm(join(home, "broken.yaml"));
    expect([broken.exit, broken.stderr]).toEqual([
      2,
      expect.stringMatching(/prices\.yaml:3: `large` is valid while/),
    ]);
  });
});

describe("the ledger", () => {
  it("lets one of two reports of a call count when two transactions book them", async () => {
    const first = reported(700n);
    let second: Promise<void> = Promise.resolve();
    let isOver = false;
    await host.transaction(async (tx) => {
      await cost.apply(tx, cost.project(first, { topic: first.type, partition: 0, offset: 0n }));
      second = book([reported(700n)]).finally(() => (isOver = true));
      await owned((owner) =>
        eventually(async () => {
          const waiting = await owner.query(
            `SELECT FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity
              WHERE datname = current_database())`,
          );
          return isOver || waiting.rows.length > 0;
        }),
      );
    });
    await second;
    expect(await countedMicros()).toEqual([700n]);
  });
});

describe("a month of the ledger", () => {
  const close = (month: string, token = "admin", ...more: string[]) =>
    run("--json", "cost", "close", month, "--token-file", join(home, token), ...more);
  const months = async () =>
    (
      JSON.parse((await run("--json", "cost", "months")).stdout) as {
        period: string;
        booked_micros: number;
        stated_micros: number | null;
        carried_micros: number | null;
        late_micros: number | null;
      }[]
    ).map((one) => [one.period, one.booked_micros, one.stated_micros, one.carried_micros, one.late_micros]);
  /** Books what was said since the last time, as the bus would. */
  let heard = 0;
  const hear = async () => {
    const events = await said();
    await book(events.slice(heard));
    heard = events.length;
  };

  it("is closed by a person with the role, when it is over, in order, and once", async () => {
    heard = 0;
    await book([
      model("large", 1_000_000n, "2026-01-31"),
      model("large", 2_000_000n, "2026-03-01"),
      model("large", 7n),
    ]);
    expect((await close("2026-01", "runtime")).exit).toBe(4);
    expect((await close("2026-13")).exit).toBe(2);
    const running = await close(today.slice(0, 7));
    expect([running.exit, running.stderr]).toEqual([1, expect.stringMatching(/COST_PERIOD.*not over/)]);
    expect((await close("2026-03")).stderr).toMatch(/COST_PERIOD.*`2026-01` is open/);
    const dry = JSON.parse((await close("2026-01", "admin", "--dry-run")).stdout) as object;
    expect(dry).toMatchObject({ amount_micros: "1000000", carried_micros: "0", is_new: true, dry_run: true });
    expect(await said()).toEqual([]);
    const first = await close("2026-01", "admin", "--note", "invoice 1");
    expect(first.exit).toBe(0);
    await hear();
    expect(JSON.parse((await close("2026-01")).stdout)).toMatchObject({
      ...(JSON.parse(first.stdout) as object),
      is_new: false,
    });
    expect(await said()).toMatchObject([
      {
        type: "fabric.cost.closed",
        origin: "human",
        actor: { user_id: "eve" },
        redacted_summary: { period: "2026-01", amount_micros: 1_000_000n, calls: 1n, note: "invoice 1" },
      },
    ]);
    expect(await months()).toEqual([
      [today.slice(0, 7), 7, null, null, null],
      ["2026-03", 2_000_000, null, null, null],
      ["2026-01", 1_000_000, 1_000_000, 0, 0],
    ]);
  });

  it("is only corrected by new entries once it is closed, and what comes late is carried by the next statement", async () => {
    heard = 0;
    const call = model("large", 1_000_000n, "2026-01-31");
    await book([call, model("large", 2_000_000n, "2026-02-01")]);
    await close("2026-01");
    await hear();
    await run(
      ...["cost", "correct", "--event", call.event_id, "--amount-micros", "-400000", "--cause", "refund"],
      ...["--token-file", join(home, "admin")],
    );
    await hear();
    // A correction is booked in the month in which it is made, and a call that comes late where it belongs.
    await book([model("large", 300_000n, "2026-01-30")]);
    expect(await months()).toEqual([
      [today.slice(0, 7), -400_000, null, null, null],
      ["2026-02", 2_000_000, null, null, null],
      ["2026-01", 1_300_000, 1_000_000, 0, 300_000],
    ]);
    expect(JSON.parse((await close("2026-02")).stdout)).toMatchObject({
      amount_micros: "2000000",
      carried_micros: "300000",
    });
    await hear();
    const text = await run("cost", "months");
    expect(text.stdout).toMatch(/2026-02 +acme +2\.000000 +2\.000000 +0\.300000/);
    const analyst = await owned((owner) =>
      owner.query("SELECT period, state, late_micros FROM analytics.cost_months ORDER BY period"),
    );
    expect(analyst.rows).toMatchObject([
      { period: "2026-01", state: "closed", late_micros: 300_000n },
      { period: "2026-02", state: "closed", late_micros: 0n },
      { state: "open", late_micros: null },
    ]);
  });

  it("keeps the first statement of a month, whatever comes first", async () => {
    const closing = (id: string, amount: bigint, at: string) =>
      eventOf(
        draft("fabric.cost.closed", {
          period: "2026-01",
          amount_micros: amount,
          carried_micros: 0n,
          calls: 1n,
          unpriced_calls: 0n,
          closed_by: "eve",
          note: null,
        }),
        {
          eventId: `evt_01900000-0000-7000-8000-00000000000${id}`,
          recordedAtMs: Date.parse(at),
          tenantId: "acme",
        },
      );
    const all = [
      closing("2", 20n, "2026-02-02"),
      closing("1", 10n, "2026-02-01"),
      closing("3", 30n, "2026-02-03"),
    ];
    for (const order of [all, [...all].reverse(), [all[1], all[0], all[1]].flatMap((one) => one ?? [])]) {
      for (const one of order) await book([one]);
      expect((await months()).map(([, , stated]) => stated)).toEqual([10]);
      await owned((owner) => owner.query("TRUNCATE cost.closings"));
      await book(order);
      expect((await months()).map(([, , stated]) => stated)).toEqual([10]);
      await owned((owner) => owner.query("TRUNCATE cost.closings"));
    }
  });
});

describe("the watch over spending", () => {
  it("says of an unusual day that it was, once, however often it looks", async () => {
    const days = Array.from({ length: 10 }, (_, n) => `2026-11-${String(n + 10)}`);
    await book([
      ...days.map((day) => model("large", 10_000_000n, day)),
      model("large", 90_000_000n, "2026-11-20"),
      model("large", 10_000_000n, "2026-11-21"),
    ]);
    const deps = { database: desk, codec, clock: systemClock, environment: "test", findAnomalies };
    expect(await announceAnomalies(deps, "2026-11-20")).toBe(3);
    expect(await announceAnomalies(deps, "2026-11-20")).toBe(3);
    expect(await announceAnomalies(deps, "2026-11-21")).toBe(0);
    const events = await said();
    expect(events).toHaveLength(3);
    expect(events[0]).toMatchObject({
      type: "fabric.cost.anomalous",
      tenant_id: "acme",
      redacted_summary: { scope: "tenant", observed_micros: 90_000_000n, expected_micros: 10_000_000n },
    });
  });

  it("judges a day an hour after its end", () => {
    expect(lastClosedDay(Date.parse("2026-11-30T00:59:59Z"))).toBe("2026-11-28");
    expect(lastClosedDay(Date.parse("2026-11-30T01:00:00Z"))).toBe("2026-11-29");
  });

  it("tells the gate how a tenant's budget stands, by the gate's own route", async () => {
    await book([model("large", 6_000_000n)]);
    const app = createHttpServer({
      log,
      metrics: createMetrics(),
      authenticator: {
        authenticate: (token) =>
          Promise.resolve({ tenantId: token, subject: "cost-watch", roles: ["reporter"], issuer: "test" }),
      },
      access: factAccess,
      probes: {},
      bodyLimitBytes: 65_536,
    });
    registerFactRoutes(app, gate);
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    const told = await reportFacts({
      loadReporters: () =>
        Promise.resolve([
          { tenantId: "acme", token: "acme" },
          { tenantId: "globex", token: "globex" },
        ]),
      loadFacts: async (tenantId, day) =>
        toBudgetFacts(
          [budget, byUser],
          await loadBudgets(desk, { day, tenantId, isPast: true }),
          tenantId,
          day,
        ),
      report: async (token, fact) => {
        const response = await fetch(`${url}/v1/facts${"by" in fact ? "/sets" : ""}`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify(fact),
        });
        expect(response.status).toBe(201);
      },
      nowMs: () => Date.now(),
      log,
    });
    await app.close();
    expect(told).toBe(4);
    const facts = await gate.query(
      "SELECT tenant_id, name, value FROM gate.dated_facts ORDER BY tenant_id, name",
    );
    const set = { by: "user", otherwise: "within" };
    expect(facts.rows).toEqual([
      { tenant_id: "acme", name: "budget.month", value: "hard" },
      { tenant_id: "acme", name: "budget.person-day", value: set },
      { tenant_id: "acme", name: "budget.person-day/ann", value: "soft" },
      { tenant_id: "globex", name: "budget.month", value: "within" },
      { tenant_id: "globex", name: "budget.person-day", value: set },
    ]);
  });
});
