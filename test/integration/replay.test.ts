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

describe("a shadow of a processor that ships", () => {
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
});
