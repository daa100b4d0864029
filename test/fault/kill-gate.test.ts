import { setTimeout as wait } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import type { CellRound } from "./ledger/cell-report.ts";
import { saveCell } from "./ledger/cell-report.ts";
import type { GateStory } from "./ledger/gate-story.ts";
import { openGateStory, stuckMs } from "./ledger/gate-story.ts";
import type { GateTrail } from "./ledger/gate-trail.ts";
import { cleanTrail, toTrailVerdict } from "./ledger/gate-trail.ts";
import { recovery } from "./ledger/link-cell.ts";
import type { ChildSettings, GateGap } from "./processes/child.ts";

let story: GateStory;
beforeEach(async () => {
  story = await openGateStory();
});
afterEach(() => story.close());

/** Decisions that are committed on these calls. */
const decided = async (calls: readonly string[]): Promise<number> =>
  Number(
    (
      await story.sql.query<{ n: bigint }>(
        "SELECT count(*) AS n FROM gate.decisions WHERE request ->> 'tool_call_id' = ANY ($1)",
        [calls],
      )
    ).rows[0]?.n,
  );

/** A gap, and what of the group's decisions has to be there once the process stands dead in it. */
const gaps: readonly { readonly gap: GateGap; readonly isCommitted: boolean | "unknown" }[] = [
  { gap: "store", isCommitted: false },
  { gap: "read", isCommitted: false },
  { gap: "write", isCommitted: false },
  { gap: "wire", isCommitted: "unknown" },
  { gap: "answer", isCommitted: true },
  { gap: "answered", isCommitted: true },
];

describe("a gate that is killed before each step of its commit, and asked again", () => {
  it(
    "decides each call once, with its evidence and its events, and no right is spent twice",
    { timeout: 600_000 },
    async () => {
      const { gate, url } = await story.gate("gate");
      await gate.start();
      const traffic = await story.startCallers([url]);
      const rounds: CellRound[] = [];
      const seen: Record<string, unknown> = {};
      const wanted: Record<string, unknown> = {};
      for (const { gap, isCommitted } of gaps) {
        const repeatedBefore = traffic.repeated;
        const calls = await gate.endIn(gap);
        const killedMs = performance.now();
        const pending = traffic.pending();
        const held = await decided(calls);
        await gate.start();
        rounds.push({
          inFlight: pending,
          committedDuring: held,
          pendingAtEnd: pending.length,
          hits: { kills: 1 },
          ...(await recovery({ seen: traffic.ended }, pending, killedMs, stuckMs)),
        });
        // Whoever lost the answer to a committed call asks it again and is told the same.
        if (gap === "answer")
          await eventually(() => traffic.repeated > repeatedBefore, Boolean, {
            what: "an answer that is repeated",
            deadlineMs: stuckMs,
          });
        seen[gap] = { underWay: pending.length > 0, committed: isCommitted === "unknown" ? null : held };
        wanted[gap] = {
          underWay: true,
          committed: isCommitted === "unknown" ? null : isCommitted ? calls.length : 0,
        };
      }
      // And at moments that nobody chose.
      for (let kill = 0; kill < 6; kill += 1) {
        await wait(300 + ((kill * 137) % 700));
        await gate.kill();
        await gate.start();
      }
      const trail = await story.judge();
      const verdict = toTrailVerdict(trail, traffic.begun.size);
      await saveCell({
        name: "gate-killed",
        link: "gate",
        fault: "SIGKILL before each step",
        rounds,
        verdict,
      });
      console.info("kills of the gate", {
        intents: traffic.ended.size,
        repeated: traffic.repeated,
        ...trail,
      });
      expect(seen).toEqual(wanted);
      expect(traffic.ended.size).toBeGreaterThan(100);
      expect(trail).toEqual(cleanTrail);
    },
  );
});

describe("a planted fault of the gate", () => {
  /** Kills a broken gate in the gap, lets it go on, and compares. */
  const run = async (broken: NonNullable<ChildSettings["broken"]>, gap: GateGap): Promise<GateTrail> => {
    const { gate, url } = await story.gate("gate", { broken });
    await gate.start();
    const traffic = await story.startCallers([url]);
    await gate.killIn(gap);
    const before = traffic.ended.size;
    // Callers that were told what is not so have given up: others come.
    traffic.burst(30);
    await eventually(() => traffic.ended.size > before + 20, Boolean, {
      what: "intents after the kill",
      deadlineMs: stuckMs,
    });
    // Callers that were told what is not so ask their resource for ever.
    return story.judge(8_000);
  };
  const options = { timeout: 300_000 };

  it("answer before the commit: callers were told what no decision holds", options, async () => {
    expect((await run("answer-first", "write")).toldWithoutDecision).toBeGreaterThan(0);
  });
  it("events after the commit: a decision stands without its events", options, async () => {
    expect((await run("events-after", "write")).eventsMissing).toBeGreaterThan(0);
  });
  it("no key of the call: who asks again is decided again", options, async () => {
    expect((await run("no-call-key", "answer")).decidedTwice).toBeGreaterThan(0);
  });
});
