import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, inject, it } from "vitest";
import { liveSteps } from "../../services/host/batch-steps.ts";
import type { OutboxEvent } from "../../services/outbox/outbox-event.ts";
import { everyFault } from "./ledger/every-fault.ts";
import type { Repeats } from "./ledger/everything-twice.ts";
import { handingOverTwice, sendingTwice } from "./ledger/everything-twice.ts";
import { runLinkCell } from "./ledger/link-cell.ts";
import type { PipelineOptions } from "./ledger/pipeline.ts";
import { watchRowsInMemory } from "./ledger/rows-in-memory.ts";
import { runStory } from "./ledger/story-cell.ts";
import { cleanVerdict } from "./ledger/verdict.ts";

const reset = everyFault.find(({ kind }) => kind === "reset") ?? { kind: "reset", everyMs: 150 };

function everythingTwice(name: string, options: Partial<PipelineOptions> = {}) {
  const repeats: Repeats = { records: 0 };
  return runStory(
    {
      name,
      link: "all",
      fault: "every record delivered twice",
      disturb: async () => {
        await wait(2_000);
        return { repeats: repeats.records };
      },
      stuckMs: 60_000,
    },
    inject("stack"),
    {
      wrapProducer: (producer) => sendingTwice(producer, repeats),
      wrapConsumer: (consumer) => handingOverTwice(consumer, repeats),
      ...options,
    },
  );
}

/** Rows of one read of the relay, and events that wait while the broker is away. */
const batchRows = 50;
const waitingRows = 400;

function brokerAway(name: string, steps?: PipelineOptions["relaySteps"]) {
  const rows = watchRowsInMemory();
  let held = 0;
  const run = runStory(
    {
      name,
      link: "broker",
      fault: "away while rows pile up",
      disturb: async ({ links, traffic }) => {
        await links.broker.begin({ kind: "refuse" });
        await traffic.burst(waitingRows);
        await wait(1_500);
        held = await rows.count();
        const { connections } = await links.broker.end();
        return { connections, "rows in memory": held };
      },
    },
    inject("stack"),
    {
      relay: { batchRows },
      relaySteps: (live) => steps?.(rows.watch(live)) ?? rows.watch(live),
    },
  );
  return run.then((result) => ({ ...result, held }));
}

describe("the ledger's other cells", () => {
  it("delivered-twice: every record comes twice, and counts once", { timeout: 300_000 }, async () => {
    const { rounds, verdict } = await everythingTwice("delivered-twice");
    expect(verdict).toEqual(cleanVerdict(verdict.committed, verdict.repeatedOnTopic));
    expect(verdict.repeatedOnTopic).toBeGreaterThan(0);
    expect(rounds[0]?.inFlight.length).toBeGreaterThan(0);
    expect(rounds[0]?.hits["repeats"]).toBeGreaterThan(0);
  });

  it(
    "broker-away: memory holds two reads at most, however many rows wait",
    { timeout: 300_000 },
    async () => {
      const { verdict, held } = await brokerAway("broker-away");
      expect(verdict).toEqual(cleanVerdict(verdict.committed, verdict.repeatedOnTopic));
      expect(held).toBeLessThanOrEqual(2 * batchRows);
    },
  );
});

describe("a planted fault", () => {
  it("no inbox: turns delivered-twice red", { timeout: 300_000 }, async () => {
    const { verdict } = await everythingTwice("planted-no-inbox (delivered-twice)", {
      hostSteps: () =>
        liveSteps.map((step) =>
          step.name !== "claim"
            ? step
            : {
                ...step,
                run: (work) => {
                  work.claimed = work.records.filter((read) => read.kind === "event");
                  return Promise.resolve();
                },
              },
        ),
    });
    expect(verdict.doubledInProjection).toBeGreaterThan(0);
  });

  it("mark before ack: turns broker-reset red", { timeout: 300_000 }, async () => {
    const { verdict } = await runLinkCell(
      { name: "planted-mark-before-ack (broker-reset)", link: "broker", fault: reset },
      inject("stack"),
      {
        relaySteps: (steps) => ({
          ...steps,
          send: async (events) => {
            await steps.remove(events);
            return steps.send(events);
          },
        }),
      },
      // A reset between the two steps is what it takes: one of so many falls there.
      { rounds: 6, stuckMs: 20_000, hasPeer: false },
    );
    expect(verdict.lostOnTopic).toBeGreaterThan(0);
  });

  it("unbounded buffer: turns broker-away red", { timeout: 300_000 }, async () => {
    const kept = new Map<bigint, OutboxEvent>();
    const { held } = await brokerAway("planted-unbounded-buffer (broker-away)", (steps) => ({
      ...steps,
      read: async (request) => {
        const events = await steps.read({ ...request, limit: 1_000_000, maxBytes: 1_000_000_000 });
        for (const event of events) kept.set(event.seq, event);
        return events.slice(0, request.limit);
      },
      remove: async (events) => {
        await steps.remove(events);
        for (const { seq } of events) kept.delete(seq);
      },
    }));
    expect(held).toBeGreaterThan(2 * batchRows);
  });
});
