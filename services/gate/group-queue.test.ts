import { describe, expect, it, vi } from "vitest";
import { eventually } from "../../test/harness/eventually.ts";
import { createGroupQueue } from "./group-queue.ts";

/** Lets the test end each group by hand. */
const rig = (
  options: {
    maxGroup?: number;
    maxInFlight?: number;
    maxWaiting?: number;
    slowMs?: number;
    paceMs?: number;
    paceSize?: number;
  } = {},
) => {
  const groups: { items: readonly number[]; end: () => void }[] = [];
  const queue = createGroupQueue<number>({
    maxGroup: 3,
    maxInFlight: 1,
    maxWaiting: 10,
    slowMs: 60_000,
    paceMs: 0,
    paceSize: 3,
    ...options,
    run: (items) => new Promise((end) => groups.push({ items, end })),
  });
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return { queue, groups, turn };
};

describe("the group queue", () => {
  it("hands on what came in one turn as one group, at once", async () => {
    const { queue, groups, turn } = rig();
    queue.push(1);
    queue.push(2);
    await turn();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2]]);
  });

  it("fills the next group while one is on its way, up to its size", async () => {
    const { queue, groups, turn } = rig();
    for (const item of [1, 2, 3, 4, 5]) queue.push(item);
    await turn();
    expect(groups).toHaveLength(1);
    queue.push(6);
    groups[0]?.end();
    await turn();
    expect(groups.map(({ items }) => items)).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
  });

  it("gives the place of a group back that throws at once", async () => {
    let runs = 0;
    const queue = createGroupQueue<number>({
      maxGroup: 1,
      maxInFlight: 1,
      maxWaiting: 10,
      slowMs: 60_000,
      paceMs: 0,
      paceSize: 1,
      run: () => {
        runs += 1;
        throw new Error("at once");
      },
    });
    for (const item of [1, 2]) queue.push(item);
    await queue.drained();
    expect(runs).toBe(2);
  });

  it("runs as many groups at once as it may", async () => {
    const { queue, groups, turn } = rig({ maxGroup: 1, maxInFlight: 2 });
    for (const item of [1, 2, 3]) queue.push(item);
    await turn();
    expect(groups).toHaveLength(2);
  });

  it("starts a group beside another only when as much waits as is under way", async () => {
    const { queue, groups, turn } = rig({ maxGroup: 5, maxInFlight: 3 });
    for (const item of [1, 2]) queue.push(item);
    await turn();
    queue.push(3);
    await turn();
    expect(groups).toHaveLength(1);
    queue.push(4);
    await turn();
    for (const item of [5, 6, 7]) queue.push(item);
    await turn();
    expect(groups.map(({ items }) => items)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    groups[0]?.end();
    await turn();
    expect(groups.at(-1)?.items).toEqual([5, 6, 7]);
  });

  it("keeps its distance to the group before while few wait, and not when many do", async () => {
    const { queue, groups, turn } = rig({ maxGroup: 5, paceMs: 60_000 });
    queue.push(1);
    await turn();
    groups[0]?.end();
    queue.push(2);
    queue.push(3);
    await turn();
    expect(groups.map(({ items }) => items)).toEqual([[1]]);
    queue.push(4);
    await turn();
    expect(groups.map(({ items }) => items)).toEqual([[1], [2, 3, 4]]);
  });

  it("lets the few go when the distance is there, though nothing else comes", async () => {
    const { queue, groups } = rig({ maxInFlight: 2, paceMs: 20 });
    queue.push(1);
    await eventually(() => groups.length === 1);
    groups[0]?.end();
    queue.push(2);
    await eventually(() => groups.length === 2);
    // As much waits as runs: it need not wait for the end of that, but for the distance.
    queue.push(3);
    await eventually(() => groups.length === 3);
    expect(groups.map(({ items }) => items)).toEqual([[1], [2], [3]]);
  });

  it("lets nobody wait behind a slow group", async () => {
    const { queue, groups, turn } = rig({ maxInFlight: 2, slowMs: -1 });
    for (const item of [1, 2]) queue.push(item);
    await turn();
    queue.push(3);
    await turn();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2], [3]]);
  });

  it("starts a lone item beside a group that hangs, though nothing else comes and nothing ends", async () => {
    const { queue, groups, turn } = rig({ maxInFlight: 3, slowMs: 20 });
    for (const item of [1, 2]) queue.push(item);
    await turn();
    queue.push(3);
    await turn();
    expect(groups).toHaveLength(1);
    await eventually(() => groups.length === 2);
    queue.push(4);
    queue.push(5);
    await eventually(() => groups.length === 3);
    expect(groups.map(({ items }) => items)).toEqual([[1, 2], [3], [4, 5]]);
  });

  it("leaves no timer behind when nothing waits", async () => {
    const { queue, groups, turn } = rig({ maxInFlight: 2, slowMs: 60_000 });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      queue.push(1);
      queue.push(2);
      await turn();
      expect(vi.getTimerCount()).toBe(0);
      queue.push(3);
      await turn();
      expect(vi.getTimerCount()).toBe(1);
      groups[0]?.end();
      await turn();
      expect(groups).toHaveLength(2);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("refuses what does not fit, and takes back what it handed on", async () => {
    const { queue, groups, turn } = rig({ maxWaiting: 2 });
    expect([1, 2, 3].map((item) => queue.push(item))).toEqual([true, true, false]);
    await turn();
    queue.push(4);
    queue.push(5);
    queue.putBack([1]);
    groups[0]?.end();
    await turn();
    expect(groups[1]?.items).toEqual([1, 4, 5]);
  });

  it("is drained when nothing waits and nothing runs", async () => {
    const { queue, groups, turn } = rig();
    await queue.drained();
    queue.push(1);
    let isDrained = false;
    const drained = queue.drained().then(() => (isDrained = true));
    await turn();
    expect(isDrained).toBe(false);
    groups[0]?.end();
    await drained;
  });
});
