import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { saveCell } from "./ledger/cell-report.ts";
import type { GateStory } from "./ledger/gate-story.ts";
import { openGateStory, stuckMs } from "./ledger/gate-story.ts";
import { cleanTrail, toTrailVerdict } from "./ledger/gate-trail.ts";
import type { GateTraffic } from "./ledger/gate-traffic.ts";
import { migrateUnderTraffic } from "./ledger/next-migrations.ts";

let story: GateStory;
beforeEach(async () => {
  story = await openGateStory();
});
afterEach(() => story.close());

/** What the next release brings: wider tables of every decision, a table more, and the function of the commit anew. */
const nextFile = `
ALTER TABLE decisions ADD COLUMN next_note text;
ALTER TABLE sessions ADD COLUMN next_note text NOT NULL DEFAULT '';
ALTER TABLE capabilities ADD COLUMN next_note text;
CREATE TABLE next_notes (decision_id uuid PRIMARY KEY);
DO $do$ BEGIN EXECUTE pg_get_functiondef('gate.commit_group'::regproc); END $do$;
`;

const count = async (text: string): Promise<number> =>
  Number((await story.sql.query<{ n: bigint }>(`SELECT count(*) AS n FROM ${text}`)).rows[0]?.n);

/** Waits until so many more intents ended. */
const progress = async (traffic: GateTraffic, more = 30): Promise<void> => {
  const from = traffic.ended.size;
  await eventually(
    () => traffic.ended.size - from,
    (n) => n >= more,
    {
      what: "intents that go on",
      deadlineMs: stuckMs,
    },
  );
};

/** Waits until both releases have decided something more. */
async function both(): Promise<void> {
  const byNext = (): Promise<number> => count("gate.next_notes");
  const byOld = (): Promise<number> =>
    count(
      "gate.decisions d WHERE NOT EXISTS (SELECT FROM gate.next_notes n WHERE n.decision_id = d.decision_id)",
    );
  const [nextFrom, oldFrom] = [await byNext(), await byOld()];
  await eventually(
    async () => [(await byNext()) - nextFrom, (await byOld()) - oldFrom],
    (more) => more.every((n) => n >= 10),
    { what: "decisions of both releases", deadlineMs: stuckMs },
  );
}

describe("two releases of the gate on one database", () => {
  it(
    "decide each call once, with its evidence and events, while one comes and the other goes, through a migration and a step back",
    { timeout: 600_000 },
    async () => {
      const [oldA, oldB] = [await story.gate("old-a"), await story.gate("old-b")];
      const [nextA, nextB] = [
        await story.gate("next-a", { release: "next" }),
        await story.gate("next-b", { release: "next" }),
      ];
      const ends: (number | null)[] = [];
      await Promise.all([oldA.gate.start(), oldB.gate.start()]);
      // Callers know all four addresses, and go on to the next one where nobody listens.
      const traffic = await story.startCallers([oldA.url, nextA.url, oldB.url, nextB.url]);
      await progress(traffic);
      const applied = await migrateUnderTraffic({
        sql: story.sql,
        adminUrl: story.rig.testDatabase.url,
        files: [{ owner: "gate", text: nextFile, grants: { next_notes: { fabric_gate: ["insert"] } } }],
        reads: ["gate.decisions", "gate.sessions", "gate.capabilities"],
        whileItWaits: () => progress(traffic),
      });
      await progress(traffic);
      await nextA.gate.start();
      await both();
      ends.push(await oldA.gate.end());
      await both();
      await nextB.gate.start();
      await oldB.gate.kill();
      await progress(traffic);
      // A step back: the old release comes again, beside and then instead of a new one.
      await oldA.gate.start();
      await both();
      ends.push(await nextA.gate.end());
      await both();
      await nextA.gate.start();
      ends.push(await oldA.gate.end());
      await progress(traffic);
      const trail = await story.judge();
      await saveCell({
        name: "gate-rollout",
        link: "gate",
        fault: "two releases, a migration, a kill",
        rounds: [],
        verdict: toTrailVerdict(trail, traffic.begun.size),
      });
      console.info("rollout of the gate", {
        intents: traffic.ended.size,
        repeated: traffic.repeated,
        ...trail,
      });
      expect(applied).toEqual(["gate"]);
      expect(ends).toEqual([0, 0, 0]);
      expect(trail).toEqual(cleanTrail);
    },
  );
});
