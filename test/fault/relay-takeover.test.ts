import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import { firstOccurrences, openRelayRig, toRow } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";

let rig: RelayRig;
beforeEach(async () => {
  rig = await openRelayRig();
  await rig.createTopic("a");
});
afterEach(() => rig.close());

const leaseMs = 500;
const rows = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => toRow("a", `k${(first + i) % 4}`, String(first + i)));

describe("relay takeover", () => {
  it("a relay that wakes up after its lease repeats, and never reorders", async () => {
    let wakeUp: () => void = () => undefined;
    const asleep = new Promise<void>((resolve) => (wakeUp = resolve));
    let sleeping = false;
    // A process that is stopped: nothing of it goes on, not even the renewal of its lease.
    const stoppable: Database = {
      ...rig.database,
      query: async <R>(...args: Parameters<Database["query"]>) => {
        if (sleeping) await asleep;
        return rig.database.query<R>(...args);
      },
    };
    await rig.append(rows(0, 40));
    const sleeper = rig.startRelay({
      database: stoppable,
      leaseMs,
      batchRows: 20,
      steps: (steps) => ({
        ...steps,
        send: async (events) => {
          const first = events[0]?.seq === 21n;
          if (first && !sleeping) {
            sleeping = true;
            await asleep;
          }
          return steps.send(events);
        },
      }),
    });
    await eventually(() => sleeping);
    const heir = rig.startRelay({ leaseMs, batchRows: 7 });
    await eventually(() => heir.relay.health().laneGroups === 16);
    await rig.append(rows(40, 40));
    await rig.drained();
    wakeUp();
    await eventually(async () => (await rig.read("a")).length > 80 || !sleeper.relay.health().leaseValid);
    await rig.append(rows(80, 20));
    await rig.drained();
    await sleeper.stop();

    const read = await rig.read("a");
    expect(read.length).toBeGreaterThan(100);
    for (let k = 0; k < 4; k += 1) {
      const expected = Array.from({ length: 100 }, (_, i) => i).filter((i) => i % 4 === k);
      const seen = read.filter((one) => one.key === `k${k}`).map((one) => one.value.toString());
      expect(firstOccurrences(seen)).toEqual(expected.map(String));
    }
  });

  it("stops sending when its lease cannot be renewed", async () => {
    let cutOff = false;
    const cut: Database = {
      ...rig.database,
      query: <R>(...args: Parameters<Database["query"]>) => {
        const text = typeof args[0] === "string" ? args[0] : args[0].text;
        return cutOff && text.includes("renew_lanes")
          ? Promise.reject(new Fault("DATABASE_UNAVAILABLE", "planted: cut off"))
          : rig.database.query<R>(...args);
      },
    };
    let sends = 0;
    const { relay } = rig.startRelay({
      database: cut,
      leaseMs,
      steps: (steps) => ({
        ...steps,
        send: (events) => {
          sends += 1;
          return steps.send(events);
        },
      }),
    });
    await rig.append(rows(0, 4));
    await rig.drained();
    cutOff = true;
    await eventually(() => !relay.health().leaseValid);
    const before = sends;
    await rig.append(rows(4, 4));
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(sends).toBe(before);
    expect(await rig.waiting()).toBe(4);
    cutOff = false;
    await rig.drained();
    expect(await rig.read("a")).toHaveLength(8);
  });
});
