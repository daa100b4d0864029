import { describe, expect, it } from "vitest";
import type {
  BatchControl,
  ConsumerHandlers,
  ConsumerPort,
  RecordBatch,
} from "../platform/kafka-consumer.ts";
import { BoundedLog } from "./bounded-log.ts";

const t0 = { topic: "t", partition: 0 };

/** A consumer of the test: it writes down what it is told, and hands over what the test says. */
function fakeConsumer() {
  const told: string[] = [];
  let handlers: ConsumerHandlers | null = null;
  const inner: ConsumerPort = {
    start: (given) => (handlers = given),
    pause: ({ partition }) => told.push(`pause ${String(partition)}`),
    resume: ({ partition }, offset) => told.push(`resume ${String(partition)}@${String(offset)}`),
    restart: () => told.push("restart"),
    stop: () => Promise.resolve(),
  };
  const toBatch = (from: number, to: number): RecordBatch => ({
    ...t0,
    assignment: 1,
    records: Array.from({ length: to - from }, (_, n) => ({
      offset: BigInt(from + n),
      key: null,
      value: null,
      headers: {},
      timestampMs: 0,
    })),
    fetchedFrom: BigInt(from),
    lastOffset: BigInt(to - 1),
    logEnd: 1_000n,
  });
  const control: BatchControl = {
    heartbeat: () => Promise.resolve(),
    commit: () => Promise.reject(new Error("nothing is committed to the group")),
    isCurrent: () => true,
  };
  return {
    told,
    inner,
    deliver: (from: number, to: number) => handlers?.batch(toBatch(from, to), control),
    assign: (offset: bigint) =>
      handlers?.assigned([t0, { topic: "t", partition: 1 }], 1).then((starts) => ({ offset, starts })),
  };
}

function hosted(bounds: BoundedLog, fake: ReturnType<typeof fakeConsumer>, position = 0n) {
  const seen: [number, number, number][] = [];
  const port = bounds.consumer(fake.inner);
  port.start({
    topics: () => Promise.resolve(["t"]),
    assigned: (partitions) => Promise.resolve(partitions.map((one) => ({ ...one, offset: position }))),
    async batch(batch, control) {
      seen.push([Number(batch.records[0]?.offset ?? -1n), batch.records.length, Number(batch.lastOffset)]);
      await control.commit(batch.lastOffset + 1n);
    },
  });
  return { seen, port };
}

describe("BoundedLog", () => {
  it("hands over nothing behind the end, and reads no partition out of the ranges", async () => {
    const bounds = new BoundedLog([{ ...t0, from: 0n, to: 25n }]);
    const fake = fakeConsumer();
    const { seen } = hosted(bounds, fake);
    expect((await fake.assign(0n))?.starts).toEqual([{ ...t0, offset: 0n }]);
    await fake.deliver(0, 20);
    await fake.deliver(20, 40);
    await fake.deliver(40, 60);
    expect(seen).toEqual([
      [0, 20, 19],
      [20, 5, 24],
    ]);
    expect(fake.told).toEqual(["pause 0", "pause 0"]);
  });

  it("goes on where it was when its end is moved, also for a partition that was done when it was assigned", async () => {
    const bounds = new BoundedLog([{ ...t0, from: 0n, to: 25n }]);
    const fake = fakeConsumer();
    hosted(bounds, fake, 25n);
    expect((await fake.assign(25n))?.starts).toEqual([]);
    bounds.extend([{ ...t0, from: 0n, to: 30n }]);
    bounds.extend([{ ...t0, from: 0n, to: 30n }]);
    await fake.deliver(25, 40);
    bounds.extend([{ ...t0, from: 0n, to: 50n }]);
    expect(fake.told).toEqual(["resume 0@25", "pause 0", "resume 0@30"]);
  });

  it("joins anew for a partition that it did not know", () => {
    const bounds = new BoundedLog([{ ...t0, from: 0n, to: 25n }]);
    const fake = fakeConsumer();
    hosted(bounds, fake);
    bounds.extend([{ topic: "u", partition: 0, from: 0n, to: 5n }]);
    expect(fake.told).toEqual(["restart"]);
  });

  it("shows ends that lie in the log: what retention took away is seen as gone", async () => {
    const bounds = new BoundedLog([{ ...t0, from: 5n, to: 25n }]);
    const ends = (earliest: bigint, latest: bigint) =>
      bounds
        .offsets({
          existing: () => Promise.resolve(new Map<string, string | null>()),
          ends: () => Promise.resolve([{ partition: 0, earliest, latest }]),
          close: () => Promise.resolve(),
        })
        .ends("t");
    expect(await ends(0n, 100n)).toEqual([{ partition: 0, earliest: 5n, latest: 25n }]);
    expect(await ends(9n, 20n)).toEqual([{ partition: 0, earliest: 9n, latest: 20n }]);
  });
});
