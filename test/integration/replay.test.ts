import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { loadCostFiles, processorsWith } from "../../services/app/load-processors.ts";
import { generateSessions } from "../../services/seed/session.ts";
import type { ReplayRig } from "../harness/replay-rig.ts";
import { openReplayRig } from "../harness/replay-rig.ts";
import { projectDir } from "../harness/stack.ts";

/** Shadows of the processors that ship, over a history of a few thousand events that live hosts have read. */

const dayMs = 86_400_000;
let rig: ReplayRig;
let live: readonly Processor[];
let events: readonly Envelope[];

beforeAll(async () => {
  const cost = await loadCostFiles(`${projectDir}/deploy/prices`, `${projectDir}/deploy/budgets.yaml`);
  live = processorsWith(cost);
  const read = new Set(live.flatMap(({ topics }) => topics));
  const plan = { seed: 7, sessions: 60, startMs: Date.now() - 3 * dayMs, days: 2, tenantPrefix: "acme" };
  events = [...generateSessions(plan)].flat().filter(({ type }) => read.has(type));
  rig = await openReplayRig([...read]);
  const host = rig.startLive(live, { fanOutLimit: { maxEmissions: 1_000_000, windowMs: 60_000 } });
  await rig.publish(events);
  for (const processor of live) await rig.settled(processor);
  await host.stop();
});
afterAll(async () => {
  await rig.close();
});

/** What a projection would be without, were it empty. */
const firstTable: Readonly<Record<string, string>> = {
  audit: "trail",
  cost: "entries",
  eval: "episodes",
  takeover: "items",
  trace: "spans",
};
const sre = (...argv: string[]) => [...argv, "--token-file", rig.tokenFile];

describe("a shadow of a processor that ships", { timeout: 180_000 }, () => {
  it.each(["audit", "cost", "eval", "takeover", "trace"])(
    "of %s equals the live projection, row by row",
    async (name) => {
      expect(events.length).toBeGreaterThan(2_000);
      const started = await rig.fabric(
        sre("replay", "start", "--processor", name, "--shadow", `again-${name}`, "--json"),
      );
      expect(started).toMatchObject({ exit: 0 });
      const { rows } = await rig.host.sql.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM ${name}.${firstTable[name]}`,
      );
      expect(rows[0]?.n).toBeGreaterThan(name === "takeover" ? 5 : 50);
      const diff = await rig.fabric(["replay", "diff", `again-${name}`, "--json"]);
      expect({ exit: diff.exit, json: diff.json, stderr: diff.stderr }).toMatchObject({
        exit: 0,
        json: { isEmpty: true },
      });
    },
  );

  it("takes the live one's place with views and rows as before, and brings along what tells of the live run", async () => {
    const views = {
      cost: ["cost_calls", "cost_entries", "cost_budgets"],
      eval: ["eval_episodes", "eval_steps"],
      takeover: ["takeover_items", "takeover_deeds"],
      trace: ["trace_goals", "trace_spans", "trace_deliveries"],
    };
    const count = async (): Promise<unknown> =>
      (
        await rig.host.sql.query(
          `SELECT ${Object.values(views)
            .flat()
            .map((view) => `(SELECT count(*)::int FROM analytics.${view}) AS ${view}`)
            .join(", ")}, (SELECT min(projected_at)::text FROM trace.deliveries) AS first_delivery`,
        )
      ).rows[0];
    const before = await count();
    for (const name of Object.keys(views)) {
      await rig.fabric(sre("replay", "accept", `again-${name}`, "--reason", "equal"));
      const promoted = await rig.fabric(sre("replay", "promote", `again-${name}`, "--json"));
      expect({ ...promoted, stdout: "" }).toMatchObject({
        exit: 0,
        json: { shadow: `again-${name}`, processor: name },
      });
      expect(await rig.fabric(sre("replay", "drop", `again-${name}`))).toMatchObject({ exit: 0 });
    }
    expect(await count()).toEqual(before);
    const { rows } = await rig.host.sql.query(
      "SELECT topic FROM host.watermarks WHERE stopped_cause IS NOT NULL",
    );
    expect(rows).toEqual([]);
  });
});
