import { join } from "node:path";
import type { Envelope } from "../../schemas/envelope.ts";
import { loadCostFiles, processorsWith } from "../../services/app/load-processors.ts";
import { openDirectProjector } from "../../services/app/project-directly.ts";
import { generateSessions } from "../../services/seed/session.ts";
import type { Bench, Row } from "./figure.ts";

/** Events of a seeded session, about. */
const eventsPerSession = 103;
/** The first and the last share of the events, which are compared. */
const share = 0.1;
/** What one event costs may grow by this from the first tenth to the last one: trees get deeper, and no more. */
const mostGrowth = 2;
/** Below this the first tenth measures the start of everything. */
const tellingEvents = 100_000;

/** One goal of a user that has no end: what its events cost a processor in the last tenth, beside the first one. */
export async function goal(bench: Bench): Promise<Row[]> {
  const database = await bench.database("goal");
  const dir = join(bench.projectDir, "deploy");
  const all = processorsWith(await loadCostFiles(join(dir, "prices"), join(dir, "budgets.yaml")));
  const rows: Row[] = [];
  for (const processor of all) {
    const projector = openDirectProjector(database.roleUrl("fabric_host"), [processor]);
    const marks: { readonly atMs: number; readonly events: number }[] = [];
    let events = 0;
    for (const session of oneGoal(Math.max(20, Math.round(bench.sizes.rows / eventsPerSession)))) {
      await projector.add(session);
      events += session.length;
      marks.push({ atMs: performance.now(), events });
    }
    await projector.end();
    const lastMs = toMicros(marks, 1 - share, 1);
    const firstMs = toMicros(marks, 0, share);
    bench.progress(
      `${processor.name}: ${firstMs.toFixed(0)} µs an event in the first tenth, ${lastMs.toFixed(0)} in the last`,
    );
    rows.push({
      name: `${processor.name}, one goal without an end`,
      unit: "µs/event in the last tenth",
      ours: lastMs,
      against: "budget",
      other: "the first tenth",
      theirs: firstMs,
      ratio: lastMs / firstMs,
      ...(events >= tellingEvents && { target: { better: "lower", ratio: mostGrowth } as const }),
      command: bench.command,
      note: `${String(events)} events of one correlation, 2,000 a transaction, no bus`,
    });
  }
  return rows;
}

/** Sessions of many people, all under one correlation of one tenant. */
function* oneGoal(sessions: number): Generator<readonly Envelope[]> {
  const plan = { seed: 3, sessions, startMs: Date.UTC(2026, 8, 1), days: 90, tenantPrefix: "goal" };
  for (const session of generateSessions(plan)) {
    yield session.map((event) => ({ ...event, tenant_id: "goal", correlation_id: "cor_without_end" }));
  }
}

function toMicros(
  marks: readonly { readonly atMs: number; readonly events: number }[],
  from: number,
  to: number,
): number {
  const first = marks[Math.floor(from * (marks.length - 1))];
  const last = marks[Math.floor(to * (marks.length - 1))];
  if (first === undefined || last === undefined) return Number.NaN;
  return ((last.atMs - first.atMs) * 1000) / Math.max(1, last.events - first.events);
}
