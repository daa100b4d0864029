import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toCause } from "../../processors/kit/emission.ts";
import { eventOf } from "../../processors/kit/given.ts";
import { defineProcessor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Step } from "../../services/host/batch-steps.ts";
import { liveSteps } from "../../services/host/batch-steps.ts";
import { FanOutGuard } from "../../services/host/fan-out-guard.ts";
import { createHostMetrics } from "../../services/host/host-metrics.ts";
import { ProcessorHost } from "../../services/host/processor-host.ts";
import { HostDied } from "../../services/host/run-slice.ts";
import { derivedUuid } from "../../services/platform/ids.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { MemoryConsumer, MemoryLog, MemoryStore } from "../harness/host-memory.ts";
import { memoryCodec } from "../harness/memory-codec.ts";

const topic = "agent.session.ended";
const codec = memoryCodec();
const log = createLog({ service: "host", level: "silent" });

/** A ledger line per event, one emission per tenth; an event that says so throws. */
const ledger = defineProcessor({
  name: "ledger",
  topics: [topic],
  emits: ["agent.tool.denied"],
  project(event) {
    if (event.redacted_summary.reason === "bad") throw new Error("cannot be");
    return [event];
  },
  async apply(tx, events) {
    await tx.query(
      "add",
      events.map(({ event_id }) => event_id),
    );
    return events
      .filter((event) => event.redacted_summary.reason === "tell")
      .map((event) => ({
        dedupeKey: event.event_id,
        cause: toCause(event),
        draft: draft("agent.tool.denied", { decision_id: "d", effect_class: "none", message: "m" }),
      }));
  },
});

const eventOfNumber = (n: number): Envelope =>
  eventOf(draft(topic, { reason: n % 10 === 3 ? "bad" : n % 10 === 7 ? "tell" : null }), {
    eventId: `evt_${derivedUuid(`event ${n}`)}`,
    correlationId: `cor_${n % 4}`,
  });

type Act =
  | { readonly do: "deliver"; readonly partition: number; readonly count: number; readonly back: number }
  | { readonly do: "restart" }
  /** The inbox is pruned down to nothing: a consumer that was down for longer than its rows are kept. */
  | { readonly do: "prune" }
  | { readonly do: "zombie"; readonly partition: number; readonly count: number }
  | {
      readonly do: "break";
      readonly step: number;
      readonly how: "die" | "fail";
      readonly partition: number;
      readonly count: number;
    };

const partition = fc.nat(1);
const count = fc.integer({ min: 1, max: 12 });
const how = fc.constantFrom("die" as const, "fail" as const);
const deliver = fc.record({ do: fc.constant("deliver" as const), partition, count, back: fc.nat(8) });
const restart = fc.constant({ do: "restart" as const });
const zombie = fc.record({ do: fc.constant("zombie" as const), partition, count });
const breakAt = fc.record({
  do: fc.constant("break" as const),
  step: fc.nat(liveSteps.length - 1),
  how,
  partition,
  count,
});
const prune = fc.constant({ do: "prune" as const });
const usual = [
  { weight: 6, arbitrary: deliver },
  { weight: 1, arbitrary: restart },
  { weight: 2, arbitrary: zombie },
  { weight: 3, arbitrary: breakAt },
];
const acts: fc.Arbitrary<Act[]> = fc.array(fc.oneof(...usual), { maxLength: 40 });
const actsWithPruning: fc.Arbitrary<Act[]> = fc.array(fc.oneof(...usual, { weight: 3, arbitrary: prune }), {
  maxLength: 40,
});

/** Which event is at which place: some are published twice, to the same partition or to the other one. */
const publications = fc.array(fc.record({ n: fc.nat(40), partition: fc.nat(1) }), {
  minLength: 1,
  maxLength: 60,
});

/** Each event once: nothing but redelivery can repeat it. */
const publicationsOnce = fc.uniqueArray(fc.record({ n: fc.nat(40), partition: fc.nat(1) }), {
  minLength: 1,
  selector: ({ n }) => n,
});

/** The steps of a host; some planted faults reach past their transaction. */
type Plan = (store: MemoryStore) => readonly Step[];
const live: Plan = () => liveSteps;

interface Ending {
  readonly ledger: readonly string[];
  readonly letters: readonly string[];
  readonly outbox: readonly string[];
}

async function runThrough(
  published: readonly { n: number; partition: number }[],
  story: readonly Act[],
  plan: Plan,
): Promise<Ending> {
  const memory = new MemoryLog([topic], 2);
  for (const { n, partition } of published)
    memory.append(topic, partition, codec.encode(eventOfNumber(n)).bytes);
  const store = new MemoryStore(ledger);
  const committed = new Map<string, bigint>();
  const broken: { at: Step["name"] | null; how: "die" | "fail" } = { at: null, how: "fail" };
  // What a planted fault does comes before its step: a death at `offset` is one after the commit.
  const breakable = plan(store).map((step): Step => ({
    name: step.name,
    async run(work, tx) {
      if (broken.at === step.name) {
        broken.at = null;
        if (broken.how === "die") throw new HostDied(step.name);
        throw new Fault("DATABASE_UNAVAILABLE", "planted");
      }
      await step.run(work, tx);
    },
  }));
  const open = async (): Promise<{ host: ProcessorHost; consumer: MemoryConsumer }> => {
    const consumer = new MemoryConsumer(memory, committed);
    const host = new ProcessorHost({
      processor: ledger,
      consumer,
      offsets: memory,
      store,
      decoder: codec,
      metrics: createHostMetrics(createMetrics(), ledger.name),
      guard: new FanOutGuard({ maxEmissions: 1_000_000, windowMs: 60_000 }),
      steps: breakable,
      clock: { nowMs: () => 1_000 },
      log,
      random: () => 0,
      owner: "member",
      environment: "test",
      topicPrefix: "",
      timings: { watchMs: 1_000_000 },
    });
    host.start();
    await consumer.assign();
    return { host, consumer };
  };
  let member = await open();
  const former: { host: ProcessorHost; consumer: MemoryConsumer }[] = [];
  const key = (partition: number): string => `${topic}/${partition}`;
  /** Whatever paused the partition is over at once: the wait itself is another test's. */
  const wake = async (): Promise<void> => {
    if ([0, 1].some((partition) => member.consumer.isPaused(key(partition)))) await member.consumer.assign();
  };
  const replace = async (): Promise<void> => {
    former.push(member);
    member = await open();
  };
  for (const act of story) {
    await wake();
    if (act.do === "deliver") await member.consumer.deliver(key(act.partition), act.count, act.back);
    else if (act.do === "restart") await replace();
    else if (act.do === "prune") store.state.inbox.clear();
    else if (act.do === "zombie") await former.at(-1)?.consumer.deliver(key(act.partition), act.count, 0);
    else {
      broken.at = breakable[act.step]?.name ?? null;
      broken.how = act.how;
      await member.consumer.deliver(key(act.partition), act.count, 0);
      broken.at = null;
      if (act.how === "die") {
        member.consumer.dead = true;
        await replace();
      }
    }
  }
  // Then everything works again, to the end of the log.
  for (const partition of [0, 1]) {
    for (let round = 0; round < 200; round += 1) {
      await wake();
      if (member.consumer.position(key(partition)) === memory.latest({ topic, partition })) break;
      await member.consumer.deliver(key(partition), 20, 0);
    }
  }
  for (const one of [...former, member]) await one.host.stop();
  return {
    ledger: [...store.state.ledger].sort(),
    letters: store.state.letters.map(({ id, eventUuid }) => `${eventUuid ?? id}`).sort(),
    outbox: [...new Set(store.state.outbox.map(({ event_id, type }) => `${type} ${event_id}`))].sort(),
  };
}

/** What must come out, said without a host. */
function expected(published: readonly { n: number }[]): Pick<Ending, "ledger" | "letters"> {
  const distinct = [...new Set(published.map(({ n }) => n))];
  return {
    ledger: distinct
      .filter((n) => n % 10 !== 3)
      .map((n) => eventOfNumber(n).event_id)
      .sort(),
    letters: distinct
      .filter((n) => n % 10 === 3)
      .map((n) => eventOfNumber(n).event_id.slice(4))
      .sort(),
  };
}

const without =
  (name: Step["name"], run: Step["run"]): Plan =>
  () =>
    liveSteps.map((step) => (step.name === name ? { name, run } : step));

const same = (all: typeof publications, stories: typeof acts, plan: Plan) =>
  fc.asyncProperty(all, stories, async (published, story) => {
    expect(await runThrough(published, story, plan)).toMatchObject(expected(published));
  });
/** Runs the property on a machine with a part taken out: that it fails is what the test wants. */
const breaks = async (property: ReturnType<typeof same>): Promise<boolean> =>
  (await fc.check(property, { numRuns: 300, seed: 7 })).failed;

describe("host", () => {
  it("gives the same ledger, letters and events as one clean run, whatever crashes, repeats and comes twice", async () => {
    await fc.assert(
      fc.asyncProperty(publications, acts, async (published, story) => {
        const ending = await runThrough(published, story, live);
        expect(ending).toMatchObject(expected(published));
        const clean = await runThrough(published, [], live);
        const emitted = (one: Ending): readonly string[] =>
          one.outbox.filter((line) => line.startsWith("agent."));
        expect(emitted(ending)).toEqual(emitted(clean));
      }),
      { numRuns: 200 },
    );
  });

  it("needs no inbox for what is merely delivered again", async () => {
    await fc.assert(same(publicationsOnce, actsWithPruning, live), { numRuns: 200 });
  });

  // The promises above are worth something only if they break when a part of the machine is taken out.
  it("counts twice when the inbox claim is taken out", async () => {
    const blind = without("claim", (work) => {
      work.claimed = work.records.filter((one) => one.kind === "event");
      return Promise.resolve();
    });
    expect(await breaks(same(publications, acts, blind))).toBe(true);
  });

  it("counts twice when the watermark does not move, and the inbox has forgotten", async () => {
    expect(
      await breaks(
        same(
          publicationsOnce,
          actsWithPruning,
          without("watermark", () => Promise.resolve()),
        ),
      ),
    ).toBe(true);
  });

  it("loses when the watermark moves before the projection is committed", async () => {
    const early: Plan = (store) =>
      liveSteps.map((step): Step => {
        if (step.name === "watermark") return { ...step, run: () => Promise.resolve() };
        if (step.name !== "claim") return step;
        return {
          ...step,
          async run(work, tx) {
            await step.run(work, tx);
            const mark = store.state.marks.get(`${topic}/${work.position.partition}`);
            if (mark !== undefined) {
              store.state.marks.set(`${topic}/${work.position.partition}`, {
                ...mark,
                nextOffset: work.nextOffset,
              });
            }
          },
        };
      });
    expect(await breaks(same(publicationsOnce, acts, early))).toBe(true);
  });
});
