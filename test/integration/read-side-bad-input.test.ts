import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { loadCostFiles, processorsWith } from "../../services/app/load-processors.ts";
import { openDirectProjector } from "../../services/app/project-directly.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { generateSessions } from "../../services/seed/session.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { projectDir } from "../harness/stack.ts";
import { dumpAll } from "../histories/dump.ts";

const hourMs = 3_600_000;
const plan = { seed: 5, sessions: 30, startMs: Date.UTC(2026, 8, 1), days: 20, tenantPrefix: "odd" };
const events = [...generateSessions(plan)].flat();

let test: TestDatabase;
let admin: Database;
let all: readonly Processor[];
beforeAll(async () => {
  test = await createTestDatabase();
  admin = openDatabase({ url: test.url, applicationName: "odd-test", maxConnections: 2 });
  all = processorsWith(
    await loadCostFiles(`${projectDir}/deploy/prices`, `${projectDir}/deploy/budgets.yaml`),
  ).filter((one) => one.name !== "audit");
});
afterAll(async () => {
  await admin.end();
  await test.drop();
});

/** Rows of all projections but the trail, which keeps the client's claims on purpose, after these events alone. */
async function project(given: readonly Envelope[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await admin.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname IN ('cost', 'eval', 'takeover', 'trace')`,
  );
  await admin.query(`TRUNCATE ${rows.map(({ name }) => name).join(", ")} CASCADE`);
  const projector = openDirectProjector(test.roleUrl("fabric_host"), all);
  await projector.add(given);
  await projector.end();
  const dumps = await dumpAll(admin);
  return new Map(
    dumps.flatMap(({ table, rows: lines }) => (table.startsWith("audit.") ? [] : [[table, lines]])),
  );
}

describe("clocks of clients that are an hour off", () => {
  it("move no cost, no episode, no item and no span", async () => {
    const right = await project(events);
    const wrong = await project(
      events.map((event, index) => ({
        ...event,
        occurred_at: event.recorded_at + (index % 2 === 0 ? hourMs : -hourMs),
      })),
    );
    expect([...right.values()].flat().length).toBeGreaterThan(events.length / 2);
    for (const [table, lines] of right) expect([table, wrong.get(table)]).toEqual([table, lines]);
  });
});

describe("a tenant with nine tenths of the events", () => {
  it("changes nothing of what its neighbours have", async () => {
    const counts = new Map<string, number>();
    for (const { tenant_id: id } of events) counts.set(id, (counts.get(id) ?? 0) + 1);
    const [[largest, most] = ["", 0]] = [...counts].sort(([, a], [, b]) => b - a);
    expect(counts.size).toBeGreaterThan(1);
    expect(most / events.length).toBeGreaterThan(0.6);
    const together = await project(events);
    const alone = await project(events.filter((event) => event.tenant_id !== largest));
    const isOthers = (line: string): boolean => !line.includes(`"tenant_id": "${largest}"`);
    for (const [table, lines] of alone) {
      // Entries have no tenant of their own: their events are compared with the usage.
      if (table === "cost.entries") continue;
      expect([table, together.get(table)?.filter(isOthers)]).toEqual([table, lines]);
    }
  });
});

describe("events whose parents never came", () => {
  it("lose nothing that is told by themselves: the ledger is whole without a single intent or decision", async () => {
    const whole = await project(events);
    const orphans = events.filter(
      (event) => !event.type.startsWith("agent.tool.") || event.type === "agent.tool.completed",
    );
    const without = await project(orphans);
    for (const table of ["cost.usage", "cost.entries", "cost.budget_state"]) {
      expect([table, without.get(table)]).toEqual([table, whole.get(table)]);
    }
    // Each goal has still one root, and no span hangs in the air.
    const loose = await admin.query(
      `SELECT s.span_id FROM trace.spans AS s WHERE s.parent_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM trace.spans AS p WHERE (p.tenant_id, p.correlation_id, p.span_id)
          = (s.tenant_id, s.correlation_id, s.parent_id))`,
    );
    expect(loose.rows).toEqual([]);
  });
});
