import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addToBudgets } from "../../processors/cost/budget-store.ts";
import type { Budget, Spending } from "../../processors/cost/budgets.ts";
import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import type { CostDimension } from "../../processors/cost/queries.ts";
import { loadBudgets } from "../../processors/cost/budget-queries.ts";
import { loadCostReport, loadUnpricedModels } from "../../processors/cost/queries.ts";
import { eventOf } from "../../processors/kit/given.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Summaries } from "../../schemas/generated/types.ts";
import { loadCorrectedCall } from "../../services/app/corrected-call.ts";
import { renderCostReport } from "../../services/app/cost-text.ts";
import type { CostCorrection } from "../../services/desk/correct-cost.ts";
import { correctCost } from "../../services/desk/correct-cost.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestAnalyst } from "../harness/analysts.ts";
import { createAnalyst } from "../harness/analysts.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { openHostRig } from "../harness/host-rig.ts";

const parsed = parsePrices([
  {
    file: "prices.yaml",
    text: [
      "currency: USD",
      "models:",
      "  - { model: large, valid_from: 2026-01-01, source: t, input_micros_per_million: 3000000, cached_input_micros_per_million: 300000, output_micros_per_million: 15000000 }",
      "tools:",
      "  - { tool: web.fetch, valid_from: 2026-01-01, source: t, call_micros: 1000 }",
    ].join("\n"),
  },
]);
if (!parsed.ok) throw new Error(parsed.problems.join("\n"));
const monthly: Budget = {
  id: "month",
  tenant: "*",
  scope: "user",
  scopeId: "*",
  period: "month",
  softMicros: 3_000_000n,
  hardMicros: 6_000_000n,
};
const costWith = (budgets: readonly Budget[]): Processor => createCost({ prices: parsed.prices, budgets });
const cost = costWith([monthly]);

let rig: HostRig;
const opened: Database[] = [];
let analyst: TestAnalyst | null = null;
beforeEach(async () => {
  rig = await openHostRig();
  await rig.createTopics(
    ["agent.model.completed", "agent.tool.completed", "agent.subagent.started", "fabric.cost.corrected"],
    2,
  );
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.end();
  await analyst?.drop();
  analyst = null;
  await rig.close();
});
const as = (role: string): Database => {
  const database = openDatabase({
    url: rig.database.roleUrl(role),
    applicationName: role,
    maxConnections: 1,
  });
  opened.push(database);
  return database;
};

let count = 0;
const fresh = (userId = "ann") => {
  count += 1;
  return {
    eventId: `evt_${newUuidV7(Date.now())}`,
    correlationId: `cor_${String(count)}`,
    recordedAtMs: Date.parse("2026-11-30T10:00:00Z") + count,
    userId,
  };
};
const model = (change: Partial<Summaries["agent.model.completed"]>, context = fresh()) =>
  eventOf(
    draft("agent.model.completed", {
      model: "large",
      outcome: "succeeded",
      input_tokens: 0n,
      cached_input_tokens: null,
      cache_write_tokens: null,
      output_tokens: null,
      reasoning_tokens: null,
      duration_ms: 20n,
      cost_micros: null,
      error_kind: null,
      model_call_id: null,
      ...change,
    }),
    context,
  );
const toolResult = (context = fresh()) =>
  eventOf(
    draft(
      "agent.tool.completed",
      {
        outcome: "succeeded",
        duration_ms: 10n,
        output_bytes: 1,
        output_preview: null,
        error_preview: null,
        tool_alias: null,
      },
      {
        execution: { session_id: "s1", tool_call_id: "call_1" },
        subject: { tool: "web.fetch", action: null, resource_ref: null, data_class: "unknown" },
      },
    ),
    context,
  );
const untilRead = (events: number) =>
  eventually(
    async () => [...(await rig.watermarks("cost")).values()].reduce((sum, one) => sum + one, 0n),
    (sum) => sum === BigInt(events),
    { deadlineMs: 20_000 },
  );
const report = (by: CostDimension, tenantId: string | null = "acme") =>
  loadCostReport(as("fabric_auditor"), {
    by,
    fromDay: "2026-01-01",
    toDay: "2027-01-01",
    tenantId,
    limit: 50,
  });
const micros = async (by: CostDimension) =>
  Object.fromEntries((await report(by)).lines.map((line) => [line.key, line.amount_micros]));

describe("cost", () => {
  it("tells what was used by every dimension, counts two results of one call once, and shows it as a table", async () => {
    rig.start([cost]);
    const call = fresh();
    const events: Envelope[] = [
      model({
        input_tokens: 130_213n,
        cached_input_tokens: 128_955n,
        output_tokens: 100n,
        reasoning_tokens: 40n,
      }),
      model({ model: "unheard-of", input_tokens: 5n }, fresh("bob")),
      toolResult(call),
      toolResult({ ...call, eventId: `evt_${newUuidV7(Date.now())}` }),
      eventOf(draft("agent.subagent.started", { subagent_id: "a1", subagent_kind: null }), fresh()),
    ];
    await rig.publish(events);
    await untilRead(events.length);
    const spent = 3_774n + 38_687n + 1_500n;
    expect(await micros("model")).toEqual({ large: spent, "(no model)": 1_000n, "unheard-of": 0n });
    expect(await micros("tool")).toEqual({ "(no tool)": spent, "web.fetch": 1_000n });
    expect(await micros("user")).toEqual({ ann: spent + 1_000n, bob: 0n });
    expect(await micros("day")).toEqual({ "2026-11-30": spent + 1_000n });
    const { total } = await report("tenant");
    expect(total).toMatchObject({
      calls: 3n,
      uncached_input_tokens: 1_263n,
      cached_input_tokens: 128_955n,
      reasoning_tokens: 40n,
      fan_out: 1n,
      unpriced_calls: 1n,
    });
    const text = renderCostReport("model", "2026-11", await report("model"));
    expect(text).toContain("0.043961");
    expect(text).toMatch(/1 calls have no price/);
    expect(await rig.letters()).toEqual([]);
  });

  it("counts two reports of one model call once, the one that tells its tokens, whichever comes first", async () => {
    rig.start([cost]);
    const call = fresh();
    const told = { model_call_id: "s1:turn-1:api:1" };
    const failed = model({ ...told, outcome: "failed", input_tokens: null }, call);
    const done = model(
      { ...told, input_tokens: 1_000n },
      { ...call, eventId: `evt_${newUuidV7(Date.now())}`, recordedAtMs: call.recordedAtMs + 5 },
    );
    const next = model(
      { model_call_id: "s1:turn-1:api:2", input_tokens: 1_000n },
      { ...fresh(), correlationId: call.correlationId },
    );
    const unnamed = [model({ input_tokens: 1_000n }), model({ input_tokens: 1_000n })];
    await rig.publish([failed, done, done, next, ...unnamed]);
    await untilRead(6);
    const { total } = await report("tenant");
    expect(total).toMatchObject({
      calls: 4n,
      uncached_input_tokens: 4_000n,
      unmeasured_calls: 0n,
      amount_micros: 12_000n,
    });
  });

  it("sets an event with numbers that cannot be aside, and books its neighbours", async () => {
    rig.start([cost]);
    await rig.publish([
      model({ input_tokens: 1_000_000n }),
      model({ input_tokens: -1n }),
      model({ input_tokens: 1n, cached_input_tokens: 2n }),
      model({ input_tokens: 1_000_000n }),
    ]);
    await untilRead(4);
    expect((await report("tenant")).total.amount_micros).toBe(6_000_000n);
    expect((await rig.letters()).map((one) => one["code"])).toEqual([
      "PROJECTION_FAILED",
      "PROJECTION_FAILED",
    ]);
  });

  it("says once that a budget is passed, also after a restart with the same events again", async () => {
    const first = rig.start([cost]);
    const events = [1, 2, 3].map(() => model({ input_tokens: 1_000_000n }));
    await rig.publish(events);
    await untilRead(3);
    await first.stop();
    await rig.sql.query("DELETE FROM host.inbox");
    rig.start([cost]);
    await rig.publish(events);
    await untilRead(6);
    const crossed = (await rig.outbox()).map((event) => [event.type, event.redacted_summary]);
    expect(crossed).toEqual([
      [
        "fabric.budget.crossed",
        expect.objectContaining({ limit_kind: "soft", scope_id: "ann", period: "2026-11" }),
      ],
      ["fabric.budget.crossed", expect.objectContaining({ limit_kind: "hard", limit_micros: 6_000_000n })],
    ]);
    expect(await loadBudgets(as("fabric_auditor"), { day: "2026-11-30", tenantId: null })).toMatchObject([
      { budget_id: "month", scope_id: "ann", spent_micros: 9_000_000n },
    ]);
  });

  it("starts a budget that is new in the middle of a month with what was spent before", async () => {
    const first = rig.start([costWith([])]);
    await rig.publish([model({ input_tokens: 1_000_000n })]);
    await untilRead(1);
    await first.stop();
    rig.start([cost]);
    await rig.publish([model({ input_tokens: 1_000_000n })]);
    await untilRead(2);
    expect(await loadBudgets(as("fabric_auditor"), { day: "2026-11-30", tenantId: null })).toMatchObject([
      { spent_micros: 6_000_000n },
    ]);
  });

  // INVARIANT: a goal that is new to a day is counted by its own rows, however much its tenant spent that day.
  it("counts what a new goal spent before without reading what its tenant spent", async () => {
    rig.start([cost]);
    const seen = model({ input_tokens: 1n });
    await rig.publish([seen]);
    await untilRead(1);
    await rig.sql.query(
      `INSERT INTO cost.usage SELECT (json_populate_record(u, json_build_object(
          'event_id', 'evt_' || i, 'call_key', 'call-' || i, 'correlation_id', 'cor_' || i))).*
        FROM cost.usage AS u, generate_series(1, 5000) AS i`,
    );
    await rig.sql.query("ANALYZE cost.usage");
    const budgets: readonly Budget[] = [{ ...monthly, id: "goal-day", scope: "correlation", period: "day" }];
    const read = await rig.sql.transaction(async (tx) => {
      await tx.query("SET LOCAL search_path = cost");
      const { rows } = await tx.query<Spending>("SELECT * FROM usage WHERE event_id = 'evt_77'");
      await addToBudgets(
        tx,
        budgets,
        rows.map((row) => ({ row: { ...row, recorded_at: seen.recorded_at }, sign: 1n })),
      );
      const state = await tx.query<{ spent: bigint }>(
        "SELECT spent_micros AS spent FROM budget_state WHERE budget_id = 'goal-day'",
      );
      expect(state.rows).toEqual([{ spent: 3n }]);
      const counted = await tx.query<{ rows: bigint }>(
        "SELECT seq_tup_read + idx_tup_fetch AS rows FROM pg_stat_xact_user_tables WHERE relid = 'cost.usage'::regclass",
      );
      return counted.rows[0]?.rows;
    });
    expect(read).toBeLessThan(100n);
  });

  it("books a correction once, however often it is sent, in the dimensions of its call; a repriced call is unpriced no more", async () => {
    rig.start([cost]);
    const call = model({ model: "unheard-of", input_tokens: 5n }, fresh("bob"));
    await rig.publish([call]);
    await untilRead(1);
    expect(await loadUnpricedModels(as("fabric_auditor"), "acme")).toEqual([
      { model: "unheard-of", calls: 1n },
    ]);
    const deps = {
      database: as("fabric_desk"),
      codec: rig.codec,
      clock: systemClock,
      environment: "test",
      loadCorrectedCall,
    };
    const correction: CostCorrection = {
      tenantId: "acme",
      correctionId: `reprice:${call.event_id}`,
      about: { eventId: call.event_id },
      amountMicros: 700n,
      cause: "repriced",
      by: "eve",
    };
    expect(await correctCost(deps, correction)).toMatchObject({ isNew: true });
    expect(await correctCost(deps, { ...correction, by: "ann" })).toMatchObject({
      isNew: false,
      author: "eve",
    });
    for (const other of [
      { amountMicros: 701n },
      { cause: "refund" },
      { about: { account: "spend" } },
    ] satisfies Partial<CostCorrection>[]) {
      await expect(correctCost(deps, { ...correction, ...other })).rejects.toThrow(/with another content/);
    }
    // The relay is not here: the events are taken from the outbox by hand, and each is published twice.
    const sent = (await rig.outbox()).filter((event) => event.type === "fabric.cost.corrected");
    expect(sent).toHaveLength(1);
    await rig.publish([...sent, ...sent]);
    await untilRead(3);
    expect(await micros("model")).toEqual({ "unheard-of": 700n });
    expect(await micros("user")).toEqual({ bob: 700n });
    expect((await report("tenant")).total).toMatchObject({
      unpriced_calls: 0n,
      corrections_micros: 700n,
      calls: 1n,
    });
    await expect(correctCost(deps, { ...correction, tenantId: "globex" })).rejects.toThrow(
      /no cost of this tenant/,
    );
  });

  it("shows analysts the same totals, double entries that add up to 0, and lets them change nothing", async () => {
    rig.start([cost]);
    await rig.publish([
      model({ input_tokens: 1_000_000n, cost_micros: 5n }),
      model({ model: "unheard-of", input_tokens: 5n }),
      toolResult(),
    ]);
    await untilRead(3);
    await rig.sql.query(
      "INSERT INTO access.analyst_tenants (role_name, tenant_id) VALUES ('fabric_analyst', 'acme')",
    );
    analyst = await createAnalyst(rig.database, ["acme"]);
    const { sql: reader } = analyst;
    const read = async (text: string) => (await reader.query(text)).rows;
    expect(await read("SELECT sum(amount_micros)::bigint AS n FROM analytics.cost_by_day")).toEqual([
      { n: 3_001_000n },
    ]);
    expect(
      await read("SELECT sum(amount_micros)::bigint AS n, count(*) AS lines FROM analytics.cost_entries"),
    ).toEqual([{ n: 0n, lines: 4n }]);
    expect(await read("SELECT model, calls FROM analytics.cost_unpriced")).toEqual([
      { model: "unheard-of", calls: 1n },
    ]);
    expect(await read("SELECT difference_micros::bigint AS n FROM analytics.cost_differences")).toEqual([
      { n: -2_999_995n },
    ]);
    expect(await read("SELECT soft_crossed, hard_crossed FROM analytics.cost_budgets")).toEqual([
      { soft_crossed: true, hard_crossed: false },
    ]);
    await expect(reader.query("UPDATE cost.usage SET amount_micros = 0")).rejects.toThrow(
      /permission denied/,
    );
    await expect(as("fabric_host").query("UPDATE cost.usage SET amount_micros = 0")).rejects.toThrow(
      /permission denied/,
    );
  });
});
