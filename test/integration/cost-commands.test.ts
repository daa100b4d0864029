import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { toBudgetFacts } from "../../processors/cost/budget-facts.ts";
import type { Budget } from "../../processors/cost/budgets.ts";
import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import { findLowered, loadPassedBudgets } from "../../processors/cost/budget-queries.ts";
import { findAnomalies } from "../../processors/cost/queries.ts";
import { loadBookedMonths } from "../../processors/cost/closings.ts";
import { loadEvidence } from "../../processors/takeover/queries.ts";
import { eventOf } from "../../processors/kit/given.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { loadCorrectedCall } from "../../services/app/corrected-call.ts";
import { costActions } from "../../services/app/cost-actions.ts";
import type { Actions } from "../../services/cli/actions.ts";
import { loadLoweredLimits } from "../../services/app/start-cost-watch.ts";
import { announceAnomalies, lastClosedDays } from "../../services/cost-watch/announce-anomalies.ts";
import { announceCrossings } from "../../services/cost-watch/announce-crossings.ts";
import { reportFacts } from "../../services/cost-watch/report-facts.ts";
import { startCostWatch } from "../../services/cost-watch/watch.ts";
import type { Desk } from "../../services/desk/server.ts";
import { createDesk } from "../../services/desk/server.ts";
import { toEmittedEvents } from "../../services/host/emissions.ts";
import { factAccess, registerFactRoutes } from "../../services/gate/fact-routes.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { loadConfig } from "../../services/platform/config.ts";
import { createHttpServer } from "../../services/platform/http.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { typeCommand } from "../harness/command-line.ts";
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
    `TRUNCATE cost.usage, cost.entries, cost.budget_state, cost.closings, desk.cost_closings,
      desk.cost_corrections, outbox.events, gate.dated_facts`,
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
async function book(events: readonly Envelope[], by = cost) {
  return host.transaction((tx) =>
    by.apply(
      tx,
      events.flatMap((event) => by.project(event, { topic: event.type, partition: 0, offset: 0n })),
    ),
  );
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
  return typeCommand(argv, actions as unknown as Actions);
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
      unpriced: 1,
      dry_run: true,
    });
    expect(await said()).toEqual([]);
    await reprice();
    await reprice();
    const events = await said();
    expect(events).toHaveLength(1);
    await book(events);
    expect(JSON.parse((await reprice()).stdout)).toMatchObject({ repriced: 0, unpriced: 1 });
    const all = await run("--json", "cost", "report", "--by", "model", "--period", "3650d");
    expect(JSON.parse(all.stdout)).toMatchObject({
      total: { amount_micros: 4_000_000, unpriced_calls: 1 },
    });
  });

  it("reprices what has a price now, however many older calls have none", async () => {
    const older = Array.from({ length: 1_100 }, () => model("nameless", 5n, "2026-11-01"));
    // Its pattern is on the list, and was not valid yet: such calls are read, and are in nobody's way either.
    const early = Array.from({ length: 1_050 }, () => model("unheard-of", 5n, "2019-11-01"));
    await book([...older, ...early, model("unheard-of", 1_000_000n), model("unheard-of", 1_000_000n)]);
    const reprice = await run("--json", "cost", "reprice", "--dry-run", "--limit", "1");
    expect(JSON.parse(reprice.stdout)).toMatchObject({
      repriced: 1,
      amount_micros: 4_000_000,
      unpriced: 2_151,
    });
    const text = await run("cost", "reprice", "--dry-run", "--limit", "1");
    expect(text.stdout).toMatch(/2151 are unpriced still; .*run it again/);
  });

  it("answers the same correction with what was recorded, and another content under its name with a refusal", async () => {
    const correct = (amount: string) =>
      run(
        ...[
          "--json",
          "cost",
          "correct",
          "--account",
          "spend",
          "--amount-micros",
          amount,
          "--cause",
          "refund",
        ],
        ...["--id", "invoice-8", "--token-file", join(home, "admin")],
      );
    const first = await correct("-500000");
    expect(JSON.parse(first.stdout)).toMatchObject({ is_new: true });
    expect(JSON.parse((await correct("-500000")).stdout)).toMatchObject({ is_new: false });
    const other = await correct("-600000");
    expect([other.exit, other.stderr]).toEqual([1, expect.stringMatching(/COST_CORRECTED.*-500000/)]);
    expect(await said()).toHaveLength(1);
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
    let second: Promise<unknown> = Promise.resolve();
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

describe("a repricing", () => {
  const correctionOf = (call: Envelope, cause = "repriced", id = `reprice:${call.event_id}`): Envelope =>
    eventOf(
      draft("fabric.cost.corrected", {
        correction_id: id,
        corrects_event_id: call.event_id,
        account: "spend:model?model=unheard-of",
        amount_micros: 1_000_000n,
        cause,
        author: "eve",
      }),
      { eventId: `evt_${newUuidV7(Date.now())}`, recordedAtMs: Date.now() },
    );
  const ordersOf = <T>(all: readonly T[]): T[][] =>
    all.length <= 1
      ? [[...all]]
      : all.flatMap((one, at) =>
          ordersOf(all.filter((_, index) => index !== at)).map((rest) => [one, ...rest]),
        );
  const spent = async (): Promise<(bigint | undefined)[]> => {
    const found = await host.query<{ spent_micros: bigint }>(
      "SELECT spent_micros FROM cost.budget_state WHERE budget_id = 'month'",
    );
    return found.rows.map((row) => row.spent_micros);
  };

  it("goes with its call when a better report takes the call's place, whatever comes first", async () => {
    const call = reported(null);
    const events = [call, correctionOf(call), reported(1_000_000n, "12:00:01")];
    for (const order of ordersOf(events)) {
      for (const one of order) await book([one]);
      expect(await countedMicros()).toEqual([1_000_000n]);
      expect(await spent()).toEqual([1_000_000n]);
      await owned((owner) => owner.query("TRUNCATE cost.usage, cost.entries, cost.budget_state"));
    }
    await book(events);
    expect(await countedMicros()).toEqual([1_000_000n]);
  });

  it("stays where it is another kind of correction, or where its call is the better report", async () => {
    const call = reported(null);
    await book([call, correctionOf(call), reported(null, "12:00:01")]);
    expect(await countedMicros()).toEqual([0n, 1_000_000n]);
    await book([correctionOf(call, "refund", "invoice-9"), reported(2_000_000n, "12:00:02")]);
    expect(await countedMicros()).toEqual([1_000_000n, 2_000_000n]);
  });

  it("is taken back when a better report is booked beside it in a transaction of its own", async () => {
    const call = reported(null);
    const better = reported(1_000_000n, "12:00:01");
    const repricing = correctionOf(call);
    for (const [one, other] of [
      [better, repricing],
      [repricing, better],
    ] as const) {
      await book([call]);
      let second: Promise<unknown> = Promise.resolve();
      let isOver = false;
      await host.transaction(async (tx) => {
        await cost.apply(tx, cost.project(one, { topic: one.type, partition: 0, offset: 0n }));
        second = book([other]).finally(() => (isOver = true));
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
      expect(await countedMicros()).toEqual([1_000_000n]);
      await owned((owner) => owner.query("TRUNCATE cost.usage, cost.entries, cost.budget_state"));
    }
  });
});

describe("a lowered limit", () => {
  const lowered: Budget = { ...budget, softMicros: 500_000n };
  const day = today;

  it("is told to the gate and said before anything is spent again, and once with what is spent next", async () => {
    await book([model("large", 600_000n)]);
    const lines = await loadPassedBudgets(desk, [lowered], { day, tenantId: "acme" });
    expect(toBudgetFacts([lowered], lines, "acme", day)).toEqual([{ name: "budget.month", value: "soft" }]);
    expect(findLowered([budget], lines)).toEqual([]);
    const deps = {
      database: desk,
      codec,
      clock: systemClock,
      environment: "test",
      findLowered: (tx: Parameters<typeof loadLoweredLimits>[0], on: string) =>
        loadLoweredLimits(tx, [lowered], on),
    };
    const told = new Set<string>();
    expect(await announceCrossings(deps, told)).toBe(1);
    expect(await announceCrossings(deps, told)).toBe(0);
    const [event] = await said();
    expect(event).toMatchObject({
      type: "fabric.budget.crossed",
      tenant_id: "acme",
      redacted_summary: { limit_kind: "soft", limit_micros: 500_000n, spent_micros: 600_000n },
    });
    const emitted = await book(
      [model("large", 1n)],
      createCost({ prices: parsed.prices, budgets: [lowered] }),
    );
    const ids = toEmittedEvents({ name: "cost", emits: ["fabric.budget.crossed"] }, emitted, 0);
    expect(ids.map((one) => one.event_id)).toEqual([event?.event_id]);
    expect(await announceCrossings(deps, new Set())).toBe(0);
    expect(
      await book([model("large", 1n)], createCost({ prices: parsed.prices, budgets: [lowered] })),
    ).toEqual([]);
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

  it("is not closed after a newer one when it is empty, and carries nothing when it is not", async () => {
    heard = 0;
    await book([model("large", 1_000_000n, "2026-03-01"), model("large", 2_000_000n, "2026-04-01")]);
    await close("2026-03");
    await hear();
    await book([model("large", 300_000n, "2026-03-02")]);
    const empty = await close("2020-10");
    expect([empty.exit, empty.stderr]).toEqual([1, expect.stringMatching(/COST_PERIOD.*nothing is booked/)]);
    await book([model("large", 50_000n, "2026-02-01")]);
    expect(JSON.parse((await close("2026-02")).stdout)).toMatchObject({
      amount_micros: "50000",
      carried_micros: "0",
    });
    expect(JSON.parse((await close("2026-04")).stdout)).toMatchObject({
      amount_micros: "2000000",
      carried_micros: "300000",
    });
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
    expect(lastClosedDays(Date.parse("2026-11-30T00:59:59Z"), 1)).toEqual(["2026-11-28"]);
    expect(lastClosedDays(Date.parse("2026-12-01T01:00:00Z"), 2)).toEqual(["2026-11-29", "2026-11-30"]);
  });

  it("judges days in which it was away when it starts, also while the gate cannot be told", async () => {
    const judged: string[] = [];
    const deps = { database: desk, codec, clock: systemClock, environment: "test" };
    const watch = startCostWatch({
      log,
      anomalies: {
        ...deps,
        findAnomalies: (_, day) => {
          judged.push(day);
          return Promise.resolve([]);
        },
      },
      crossings: { ...deps, findLowered: () => Promise.reject(new Error("away")) },
      facts: {
        loadReporters: () => Promise.reject(new Error("the folder of tokens is away")),
        loadFacts: () => Promise.resolve([]),
        report: () => Promise.resolve(),
        nowMs: () => Date.now(),
        log,
      },
    });
    await watch.stop();
    expect(judged).toEqual(lastClosedDays(Date.now(), 7));
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
          await loadPassedBudgets(desk, [budget, byUser], { day, tenantId }),
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
