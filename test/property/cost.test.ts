import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createCost } from "../../processors/cost/cost.ts";
import { parsePrices } from "../../processors/cost/prices.ts";
import { dumpTables, loadCostReport } from "../../processors/cost/queries.ts";
import type { Budget } from "../../processors/cost/budgets.ts";
import { eventOf } from "../../processors/kit/given.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import type { PlainEvent, PlainPrice } from "./cost-reference.ts";
import { referenceTotals, toPriceText } from "./cost-reference.ts";

const models: readonly PlainPrice[] = [
  { name: "m1", from: "2026-01-01", until: "2026-03-02", rates: [3_000_000, 300_000, 3_750_000, 15_000_000] },
  { name: "m1", from: "2026-03-02", rates: [2_500_001, 250_003, 3_125_007, 12_500_013] },
];
const tools: readonly PlainPrice[] = [{ name: "web.fetch", from: "2026-01-01", rates: [1_000, 333, 7] }];
const parsed = parsePrices([{ file: "prices.yaml", text: toPriceText(models, tools) }]);
if (!parsed.ok) throw new Error(parsed.problems.join("\n"));
const budget = (id: string, scope: Budget["scope"], period: Budget["period"]): Budget => ({
  id,
  tenant: "*",
  scope,
  scopeId: "*",
  period,
  softMicros: 1_000_000n,
  hardMicros: 50_000_000n,
});
const budgets = [budget("t", "tenant", "month"), budget("u", "user", "day"), budget("m", "model", "day")];
const cost = createCost({ prices: parsed.prices, budgets });

let database: TestDatabase;
let sql: Database;
let owner: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  sql = openDatabase({
    url: database.roleUrl("fabric_host"),
    applicationName: "cost-property",
    searchPath: ["cost"],
    maxConnections: 4,
  });
  owner = openDatabase({
    url: database.url,
    applicationName: "cost-property",
    searchPath: ["cost"],
    maxConnections: 1,
  });
});
afterAll(async () => {
  await sql.end();
  await owner.end();
  await database.drop();
});

const tokens = fc.bigInt({ min: 0n, max: 300_000n });
const step = fc.record({
  what: fc.constantFrom("model", "model", "tool", "tool", "subagent", "correction", "repricing"),
  tenantId: fc.constantFrom("acme", "globex"),
  userId: fc.constantFrom("ann", "bob", null),
  correlation: fc.nat(2),
  call: fc.nat(3),
  modelCall: fc.option(fc.nat(1)),
  // Around two ends of a day, one of them also of a month and one of a price.
  atMs: fc.integer({ min: -3, max: 3 }).chain((n) => fc.constantFrom(n, n + 86_400_000)),
  model: fc.constantFrom("m1", "m1", "unknown"),
  tool: fc.constantFrom("web.fetch", "file.read"),
  outcome: fc.constantFrom("succeeded", "failed", "blocked"),
  parts: fc.tuple(tokens, tokens, tokens, tokens),
  claim: fc.option(fc.bigInt({ min: 0n, max: 9_999n })),
  isMeasured: fc.boolean(),
  amount: fc.bigInt({ min: -5_000n, max: 5_000n }),
  /** Which of the model calls a repricing is of; some are of none that is there. */
  of: fc.nat(30),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const eventIdOf = (index: number): string =>
  `evt_01900000-0000-7000-8000-${index.toString(16).padStart(12, "0")}`;

function toEvent(one: Step, index: number, all: readonly Step[]): Envelope {
  const models = all.flatMap(({ what }, at) => (what === "model" ? [at] : []));
  const repriced = one.what === "repricing" ? (models[one.of % (models.length + 1)] ?? 4_000) : null;
  const context = {
    eventId: eventIdOf(index),
    recordedAtMs: Date.parse("2026-03-01T00:00:00Z") + one.atMs,
    tenantId: (repriced === null ? undefined : all[repriced]?.tenantId) ?? one.tenantId,
    correlationId: `cor_${String(one.correlation)}`,
    userId: one.userId,
  };
  const execution = { session_id: "s", tool_call_id: `call_${String(one.call)}` };
  switch (one.what) {
    case "model": {
      const [fresh, cached, written, output] = one.parts;
      return eventOf(
        draft(
          "agent.model.completed",
          {
            model: one.model,
            outcome: "succeeded",
            input_tokens: one.isMeasured ? fresh + cached + written : null,
            cached_input_tokens: one.isMeasured ? cached : null,
            cache_write_tokens: one.isMeasured ? written : null,
            output_tokens: one.isMeasured ? output : null,
            reasoning_tokens: null,
            duration_ms: 5n,
            cost_micros: one.claim,
            error_kind: null,
            model_call_id: one.modelCall === null ? null : `api:${String(one.modelCall)}`,
          },
          { execution },
        ),
        context,
      );
    }
    case "tool":
      return eventOf(
        draft(
          "agent.tool.completed",
          {
            outcome: one.outcome,
            duration_ms: one.parts[0],
            output_bytes: Number(one.parts[1]),
            output_preview: null,
            error_preview: null,
            tool_alias: null,
          },
          { execution, subject: { tool: one.tool, action: null, resource_ref: null, data_class: "unknown" } },
        ),
        context,
      );
    case "subagent":
      return eventOf(
        draft(
          "agent.subagent.started",
          { subagent_id: `a${String(one.call)}`, subagent_kind: null },
          { execution },
        ),
        context,
      );
    default:
      return eventOf(
        draft("fabric.cost.corrected", {
          correction_id: `c${String(one.call)}`,
          corrects_event_id: repriced === null ? null : eventIdOf(repriced),
          account: `spend:model?model=${one.model}&user=bob`,
          amount_micros: one.amount,
          cause: repriced === null ? "refund" : "repriced",
          author: "eve",
        }),
        context,
      );
  }
}

const empty = async (): Promise<void> => {
  for (const { table } of dumpTables) await owner.query(`DELETE FROM ${table}`);
};
const dump = async (): Promise<unknown[]> => {
  const dumps: unknown[] = [];
  for (const { table, orderBy } of dumpTables) {
    dumps.push((await sql.query(`SELECT * FROM ${table} ORDER BY ${orderBy}`)).rows);
  }
  return dumps;
};

/** Applies events in batches of a size, each in its own transaction, and answers what was said of budgets. */
async function apply(events: readonly Envelope[], batchSize: number): Promise<string[]> {
  const said: string[] = [];
  for (let from = 0; from < events.length; from += batchSize) {
    const batch = events.slice(from, from + batchSize);
    const changes = batch.flatMap((event) =>
      cost.project(event, { topic: event.type, partition: 0, offset: 0n }),
    );
    const emissions = await sql.transaction((tx) => cost.apply(tx, changes));
    said.push(...emissions.map((one) => `${one.cause.tenant_id} ${one.dedupeKey}`));
  }
  return said;
}

/** Empties the tables, applies events, and reads the tables. */
async function run(events: readonly Envelope[], batchSize: number): Promise<unknown[]> {
  await empty();
  await apply(events, batchSize);
  return dump();
}

it("comes to the same tables and to the reference's totals in any order, with duplicates and with a replay on top", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 40 }),
      fc.infiniteStream(fc.nat()),
      fc.integer({ min: 1, max: 9 }),
      async (steps, dice, batchSize) => {
        const events = steps.map(toEvent);
        const roll = (): number => {
          const { value } = dice.next() as { readonly value: number };
          return value;
        };
        const clean = await run(events, events.length);
        const shuffled = [...events, ...events.filter(() => roll() % 3 === 0)]
          .map((event) => ({ event, at: roll() }))
          .sort((a, b) => a.at - b.at)
          .map(({ event }) => event);
        expect(await run(shuffled, batchSize)).toEqual(clean);

        const found = await sql.query<{ key: string; micros: bigint }>(
          `SELECT tenant_id || ' ' || day AS key, sum(amount_micros)::bigint AS micros FROM usage WHERE is_counted
            GROUP BY 1 HAVING sum(amount_micros) <> 0`,
        );
        const expected = referenceTotals(events as unknown as PlainEvent[], models, tools);
        expect(new Map(found.rows.map((row) => [row.key, row.micros]))).toEqual(expected);

        const unbalanced = await sql.query(
          `SELECT u.event_id FROM usage u LEFT JOIN entries e USING (event_id) GROUP BY u.event_id, u.amount_micros
            HAVING coalesce(sum(e.amount_micros), 0) <> 0
              OR coalesce(sum(e.amount_micros) FILTER (WHERE e.line % 2 = 1), 0) <> u.amount_micros`,
        );
        expect(unbalanced.rows).toEqual([]);

        const total = [...expected.values()].reduce((sum, one) => sum + one, 0n);
        for (const by of ["tenant", "model", "day"] as const) {
          const report = await loadCostReport(sql, {
            by,
            fromDay: null,
            toDay: null,
            tenantId: null,
            limit: 100,
          });
          expect(report.total.amount_micros).toBe(total);
          expect(report.lines.reduce((sum, line) => sum + line.amount_micros, 0n)).toBe(total);
        }
        const spent = await sql.query<{ micros: bigint }>(
          "SELECT coalesce(sum(spent_micros), 0)::bigint AS micros FROM budget_state WHERE budget_id = 't'",
        );
        expect(spent.rows[0]?.micros).toBe(total);
      },
    ),
    { numRuns: 60, endOnFailure: true },
  );
});

/** The partition that an event comes from: a correction's key is its tenant, another's its goal. */
const partitionOf = (event: Envelope): string =>
  event.type === "fabric.cost.corrected"
    ? `${event.type} ${event.tenant_id}`
    : `${event.type} ${event.tenant_id} ${event.correlation_id}`;

it("comes to the same tables when partitions commit at the same time, and says each passed limit", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        step.map((one) => ({ ...one, amount: one.amount < 0n ? -one.amount : one.amount })),
        { minLength: 20, maxLength: 60 },
      ),
      fc.integer({ min: 1, max: 4 }),
      async (steps, batchSize) => {
        const events = steps.map(toEvent);
        const clean = await run(events, events.length);
        const over = await sql.query<{ soft: bigint; hard: bigint }>(
          `SELECT count(*) FILTER (WHERE spent_micros >= soft_micros) AS soft,
            count(*) FILTER (WHERE spent_micros >= hard_micros) AS hard FROM budget_state`,
        );
        await empty();
        const partitions = new Map<string, Envelope[]>();
        for (const event of events) {
          const name = partitionOf(event);
          partitions.set(name, [...(partitions.get(name) ?? []), event]);
        }
        const said = (await Promise.all([...partitions.values()].map((one) => apply(one, batchSize)))).flat();
        expect(await dump()).toEqual(clean);
        const limits = Number((over.rows[0]?.soft ?? 0n) + (over.rows[0]?.hard ?? 0n));
        // A duplicate that was told first may have passed a limit that the call itself does not, and twice what is said
        // twice has one id.
        expect(new Set(said).size).toBeGreaterThanOrEqual(limits);
      },
    ),
    { numRuns: 20, endOnFailure: true },
  );
});
