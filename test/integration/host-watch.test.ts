import { afterEach, beforeEach, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import { liveSteps } from "../../services/host/batch-steps.ts";
import type { Step } from "../../services/host/batch-steps.ts";
import { FanOutGuard } from "../../services/host/fan-out-guard.ts";
import { createHostMetrics } from "../../services/host/host-metrics.ts";
import { ProcessorHost } from "../../services/host/processor-host.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { eventually } from "../harness/eventually.ts";
import { MemoryConsumer, MemoryLog, MemoryStore } from "../harness/host-memory.ts";
import { ledgerProcessor, modelEvent } from "../harness/host-rig.ts";
import { memoryCodec } from "../harness/memory-codec.ts";

const topic = "agent.model.completed";
const codec = memoryCodec();
const key = `${topic}/0`;

let memory: MemoryLog;
let consumer: MemoryConsumer;
let store: MemoryStore;
let host: ProcessorHost;
/** How often the ends of the log were asked for. */
let looks: number;
/** The next answer about the ends of the log, once. */
let wrongEnd: bigint | null;

function open(steps: readonly Step[] = liveSteps): void {
  host = new ProcessorHost({
    processor: ledgerProcessor(),
    consumer,
    offsets: {
      existing: (topics) => memory.existing(topics),
      async ends(name) {
        looks += 1;
        const ends = await memory.ends(name);
        const latest = wrongEnd;
        wrongEnd = null;
        return latest === null ? ends : ends.map((end) => ({ ...end, latest }));
      },
      close: () => Promise.resolve(),
    },
    store,
    decoder: codec,
    metrics: createHostMetrics(createMetrics(), "ledger"),
    guard: new FanOutGuard({ maxEmissions: 1_000, windowMs: 60_000 }),
    steps,
    clock: { nowMs: () => Date.now() },
    log: createLog({ service: "host", level: "silent" }),
    random: () => 0,
    owner: "member",
    environment: "test",
    topicPrefix: "",
    timings: { watchMs: 10 },
  });
  host.start();
}
const append = (count: number): void => {
  for (let n = 0; n < count; n += 1) memory.append(topic, 0, codec.encode(modelEvent(n)).bytes);
};
const status = () => host.health().partitions.map((one) => [one.status, one.reason]);
const untilLooked = async (times: number): Promise<void> => {
  const from = looks;
  await eventually(() => looks >= from + times);
};

beforeEach(async () => {
  memory = new MemoryLog([topic], 1);
  consumer = new MemoryConsumer(memory, new Map());
  store = new MemoryStore(ledgerProcessor());
  looks = 0;
  wrongEnd = null;
  append(8);
});
afterEach(() => host.stop());

it("stops a partition whose topic was made anew while it had nothing to read", async () => {
  open();
  await consumer.assign();
  await consumer.deliver(key, 8, 0);
  await untilLooked(3);
  expect(status()).toEqual([["running", null]]);
  memory.partitions.set(key, { earliest: 0n, records: [] });
  await eventually(() => status()[0]?.[0] === "stopped");
  expect(status()).toEqual([["stopped", "log_end_below_position"]]);
  expect(consumer.isPaused(key)).toBe(true);
  expect(store.state.outbox.map(({ type }) => type)).toEqual(["fabric.gap.found"]);
});

it("stops a partition that waits when retention takes what it has not processed", async () => {
  const away: readonly Step[] = liveSteps.map((step) =>
    step.name === "claim"
      ? { ...step, run: () => Promise.reject(new Fault("DATABASE_UNAVAILABLE", "planted")) }
      : step,
  );
  open(away);
  await consumer.assign();
  await consumer.deliver(key, 8, 0);
  const log = memory.partitions.get(key);
  if (log === undefined) throw new Error("no log");
  log.earliest = 8n;
  await eventually(() => status()[0]?.[0] === "stopped");
  expect(status()).toEqual([["stopped", "retention"]]);
});

it("does not stop a partition for records that it has in hand, or for one look that was wrong", async () => {
  let release: () => void = () => undefined;
  const hold = new Promise<void>((resolve) => (release = resolve));
  open(
    liveSteps.map((step) =>
      step.name === "claim" ? { ...step, run: async (work, tx) => (await hold, step.run(work, tx)) } : step,
    ),
  );
  await consumer.assign();
  const delivered = consumer.deliver(key, 8, 0);
  const log = memory.partitions.get(key);
  if (log === undefined) throw new Error("no log");
  log.earliest = 8n;
  await untilLooked(4);
  release();
  await delivered;
  await untilLooked(3);
  expect(status()).toEqual([["running", null]]);
  // A new leader may know a shorter log for a moment.
  wrongEnd = 4n;
  await untilLooked(5);
  expect(status()).toEqual([["running", null]]);
});
