import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createBreaker } from "../../processors/breaker/breaker.ts";
import type { Threshold } from "../../processors/breaker/thresholds.ts";
import { eventOf } from "../../processors/kit/given.ts";
import type { Emission } from "../../processors/kit/emission.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { newEventId } from "../../services/platform/ids.ts";
import { systemClock } from "../../services/platform/clock.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";

let test: TestDatabase;
let host: Database;
let sql: Database;
beforeAll(async () => {
  test = await createTestDatabase();
  host = openDatabase({
    url: test.roleUrl("fabric_host"),
    applicationName: "breaker-test",
    searchPath: ["breaker"],
    maxConnections: 8,
  });
  sql = openDatabase({ url: test.url, applicationName: "breaker-test", maxConnections: 2 });
  await sql.query("INSERT INTO access.tenants (tenant_id) VALUES ('acme')");
});
afterAll(async () => {
  await host.end();
  await sql.end();
  await test.drop();
});
beforeEach(async () => {
  await sql.query(
    "TRUNCATE breaker.buckets, breaker.model_calls, breaker.resets, breaker.trips, incidents.holds",
  );
});

const limit: Threshold = {
  scope: "correlation",
  measure: "fan_out",
  windowMs: 60_000,
  limit: 10n,
  minCount: 1n,
  resetAfterMs: null,
};
const breakerWith = (...usual: readonly Threshold[]) =>
  createBreaker({
    thresholds: { usual, byTenant: new Map() },
    costOf: ({ redacted_summary: { cost_micros } }) => ({
      micros: cost_micros ?? 0n,
      silence: cost_micros === null ? 1 : 0,
    }),
  });
const started = (recordedAtMs: number, correlationId = "cor_1"): Envelope =>
  eventOf(
    draft(
      "agent.subagent.started",
      { subagent_id: "child", subagent_kind: null },
      { execution: { session_id: "s1" } },
    ),
    { eventId: newEventId(systemClock), recordedAtMs, correlationId },
  );
const resetOf = (correlationId: string, recordedAtMs: number): Envelope =>
  eventOf(
    draft("fabric.breaker.reset", {
      scope: "correlation",
      scope_id: correlationId,
      reset_by: "ida",
      cause: "looked",
      trip_id: null,
    }),
    { eventId: newEventId(systemClock), recordedAtMs },
  );
/** A batch, as the host hands it over. */
const apply = (events: readonly Envelope[], breaker = breakerWith(limit)): Promise<readonly Emission[]> => {
  const changes = events.flatMap((event, index) =>
    breaker.project(event, { topic: event.type, partition: 0, offset: BigInt(index) }),
  );
  return host.transaction((tx) => breaker.apply(tx, changes));
};
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const count = async (table: string): Promise<number> =>
  Number((await sql.query<{ n: bigint }>(`SELECT count(*) AS n FROM ${table}`)).rows[0]?.n);
const buckets = async () =>
  (await sql.query("SELECT * FROM breaker.buckets ORDER BY tenant_id, scope, scope_id, started_at")).rows;

describe("the breaker", () => {
  it("counts the same whatever the order of its events and the size of its batches", async () => {
    const events = times(40, (index) => started(1_767_225_600_000 + index * 777, `cor_${String(index % 3)}`));
    await apply(events);
    const whole = await buckets();
    expect(whole.length).toBeGreaterThan(20);
    await sql.query("TRUNCATE breaker.buckets");
    const shuffled = [...events].sort((a, b) => (a.event_id.slice(-6) < b.event_id.slice(-6) ? -1 : 1));
    for (let at = 0; at < shuffled.length; at += 7) await apply(shuffled.slice(at, at + 7));
    expect(await buckets()).toEqual(whole);
  });

  it("counts a model call once, by the report that tells more, whatever comes first and in whichever batch", async () => {
    const atMs = 1_767_225_600_000;
    const report = (claim: bigint | null, afterMs: number, agentId: string | null = null): Envelope =>
      eventOf(
        draft(
          "agent.model.completed",
          {
            model: "large",
            outcome: "succeeded",
            input_tokens: 5n,
            cached_input_tokens: null,
            cache_write_tokens: null,
            output_tokens: 1n,
            reasoning_tokens: null,
            duration_ms: 5n,
            cost_micros: claim,
            error_kind: null,
            model_call_id: "api:1",
          },
          { execution: { session_id: "s1" }, ...(agentId === null ? {} : { agent_id: agentId }) },
        ),
        { eventId: newEventId(systemClock), recordedAtMs: atMs + afterMs },
      );
    const hook = report(null, 0, "child");
    const plugin = report(700n, 6_000);
    const later = report(900n, 7_000);
    const sums = async () =>
      (
        await sql.query(
          `SELECT scope, scope_id, sum(events)::int AS events, sum(cost_micros)::int AS micros, sum(priced)::int AS priced
            FROM breaker.buckets WHERE scope <> 'all' GROUP BY 1, 2 ORDER BY 1, 2`,
        )
      ).rows;
    for (const order of [
      [[hook], [plugin], [later]],
      [[later], [plugin], [hook]],
      [[plugin, hook, later]],
      [
        [hook, later],
        [plugin, plugin],
      ],
    ]) {
      for (const batch of order) await apply(batch);
      expect(await sums()).toMatchObject([
        {
          scope: "agent",
          scope_id: expect.not.stringMatching(/child/) as unknown,
          events: 1,
          micros: 700,
          priced: 1,
        },
        { scope: "correlation", events: 1, micros: 700, priced: 1 },
        { scope: "tenant", events: 1, micros: 700, priced: 1 },
      ]);
      await sql.query("TRUNCATE breaker.buckets, breaker.model_calls");
    }
  });

  it("trips with the event that passes the limit, once, and what it writes holds the scope", async () => {
    const nowMs = Date.now();
    expect(await apply(times(10, () => started(nowMs)))).toEqual([]);
    expect(await count("incidents.holds")).toBe(0);
    const crossing = started(nowMs);
    const said = await apply([crossing]);
    expect(said).toMatchObject([
      {
        cause: { event_id: crossing.event_id, tenant_id: "acme", correlation_id: "cor_1" },
        draft: {
          type: "fabric.breaker.tripped",
          redacted_summary: { scope: "correlation", scope_id: "cor_1", observed: 11n, threshold: 10n },
        },
      },
    ]);
    const { rows } = await sql.query("SELECT * FROM incidents.holds");
    expect(rows).toMatchObject([
      {
        source: "breaker",
        mode: "read_only",
        tenant_id: "acme",
        scope_id: "cor_1",
        evidence: { observed: 11, crossed_by: crossing.event_id },
        until: null,
      },
    ]);
    expect(await apply(times(30, () => started(nowMs)))).toEqual([]);
    expect([await count("breaker.trips"), await count("incidents.holds")]).toEqual([1, 1]);
    const shown = async () => (await sql.query("SELECT * FROM analytics.breaker_trips")).rows;
    const trip = {
      tenant_id: "acme",
      scope: "correlation",
      scope_id: "cor_1",
      measure: "fan_out",
      observed: 11n,
    };
    expect(await shown()).toMatchObject([
      { ...trip, state: "read_only", crossed_by_event_id: crossing.event_id, reset_at: null },
    ]);
    await apply([resetOf("cor_1", Date.now() + 1_000)]);
    expect(await shown()).toMatchObject([{ ...trip, state: "reset", reset_by: "ida" }]);
  });

  it("trips once when several batches pass the limit at the same time", async () => {
    const nowMs = Date.now();
    const said = await Promise.all(times(6, () => apply(times(8, () => started(nowMs)))));
    expect(said.flat()).toHaveLength(1);
    expect([await count("breaker.trips"), await count("incidents.holds")]).toEqual([1, 1]);
  });

  it("trips on nothing of an old backlog, however much it is", async () => {
    expect(await apply(times(500, () => started(Date.now() - 70_000)))).toEqual([]);
    expect(await count("breaker.trips")).toBe(0);
  });

  it("does not trip again after a reset on what was counted before it, and does on what comes after", async () => {
    const nowMs = Date.now();
    await apply(times(11, () => started(nowMs - 20_000)));
    expect(await count("breaker.trips")).toBe(1);
    // By the reset's own event; it was recorded after the trip.
    const { rows } = await sql.query<{ at: Date }>("SELECT clock_timestamp() AS at");
    await apply([resetOf("cor_1", (rows[0]?.at.getTime() ?? nowMs) + 1)]);
    await sql.query("UPDATE incidents.holds SET lifted_at = clock_timestamp(), lifted_by = 'ida'");
    expect(await apply([started(nowMs)])).toEqual([]);
    const laterMs = Date.now() + 10_000;
    expect(await apply(times(11, () => started(laterMs)))).toHaveLength(1);
    expect(await count("incidents.holds")).toBe(2);
  });

  it("trips again by itself where a trip ends by its time, and says when", async () => {
    const timed = breakerWith({ ...limit, resetAfterMs: 1 });
    const nowMs = Date.now();
    const [first] = await apply(
      times(11, () => started(nowMs)),
      timed,
    );
    expect(first?.draft.redacted_summary).toMatchObject({ resets_at: expect.any(Number) as number });
    expect(await apply([started(nowMs)], timed)).toHaveLength(1);
    expect(await count("incidents.holds WHERE lifted_at IS NULL")).toBe(1);
  });

  it("puts everything to read-only for what concerns every tenant", async () => {
    const said = await apply(
      times(11, (index) => started(Date.now(), `cor_${String(index)}`)),
      breakerWith({ ...limit, scope: "all" }),
    );
    expect(said).toMatchObject([
      { cause: { tenant_id: "fabric" }, draft: { redacted_summary: { scope: "all", scope_id: "*" } } },
    ]);
    expect((await sql.query("SELECT tenant_id FROM incidents.holds")).rows).toEqual([{ tenant_id: "*" }]);
  });
});
