import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LaneLeases } from "../../services/outbox/lane-leases.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import { openRelayRig, toRow } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";

let rig: RelayRig;
let database: Database;
beforeEach(async () => {
  rig = await openRelayRig();
  database = openDatabase({ url: rig.testDatabase.roleUrl("fabric_relay"), applicationName: "lanes" });
});
afterEach(async () => {
  await database.end();
  await rig.close();
});

const leasesOf = (relayId: string, leaseMs = 60_000): LaneLeases =>
  new LaneLeases({ database, relayId, leaseMs, nowMs: () => performance.now() });

describe("lane leases", () => {
  it("gives all lanes to a relay that is alone, and never one lane to two", async () => {
    const a = leasesOf("a");
    const b = leasesOf("b");
    await Promise.all([a.renew(), b.renew(), a.renew()]);
    const held = [...a.view.groups, ...b.view.groups];
    expect(new Set(held).size).toBe(held.length);
    await a.renew();
    await a.releaseLeaving();
    await b.renew();
    await b.releaseLeaving();
    await a.renew();
    expect([a.view.groups.length, b.view.groups.length]).toEqual([8, 8]);
    expect(new Set([...a.view.groups, ...b.view.groups]).size).toBe(16);
  });

  it("keeps surplus with its holder until it gives it back", async () => {
    const a = leasesOf("a");
    const b = leasesOf("b");
    await a.renew();
    expect(a.view).toMatchObject({ all: true });
    await b.renew();
    expect(b.view.groups).toEqual([]);
    await a.renew();
    expect([a.view.groups.length, a.leaving.length]).toEqual([8, 8]);
    await b.renew();
    expect(b.view.groups).toEqual([]);
    await a.releaseLeaving();
    await b.renew();
    expect(b.view.groups).toHaveLength(8);
  });

  it("shares sixteen groups among three and seventeen relays", async () => {
    const three = ["a", "b", "c"].map((id) => leasesOf(id));
    for (let round = 0; round < 3; round += 1) {
      for (const one of three) {
        await one.renew();
        await one.releaseLeaving();
      }
    }
    expect(three.map((one) => one.view.groups.length).sort((x, y) => x - y)).toEqual([4, 6, 6]);
    const many = [...three, ...Array.from({ length: 14 }, (_, i) => leasesOf(`m${i}`))];
    for (let round = 0; round < 3; round += 1) {
      for (const one of many) {
        await one.renew();
        await one.releaseLeaving();
      }
    }
    expect(many.reduce((sum, one) => sum + one.view.groups.length, 0)).toBe(16);
    expect(Math.max(...many.map((one) => one.view.groups.length))).toBe(1);
  });

  it("passes a dead relay's lanes on after their lease, and not before", async () => {
    const dead = leasesOf("dead", 700);
    const heir = leasesOf("heir", 700);
    const startedAtMs = performance.now();
    await dead.renew();
    await heir.renew();
    expect(heir.view.groups).toEqual([]);
    await eventually(
      async () => {
        await heir.renew();
        return heir.view.groups.length;
      },
      (count) => count === 16,
    );
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(690);
    expect(dead.valid).toBe(false);
  });

  it("shares the work of two relays, and one takes all of it when the other stops", async () => {
    await rig.createTopic("a");
    const one = rig.startRelay({ leaseMs: 1_000 });
    const two = rig.startRelay({ leaseMs: 1_000 });
    const groups = (): number[] => [one, two].map(({ relay }) => relay.health().laneGroups);
    await eventually(groups, ([a, b]) => a === 8 && b === 8);
    await rig.append(Array.from({ length: 200 }, (_, i) => toRow("a", `k${i}`, `m${i}`)));
    await rig.drained();
    await two.stop();
    await eventually(groups, ([a]) => a === 16, { deadlineMs: 5_000 });
    await rig.append(Array.from({ length: 200 }, (_, i) => toRow("a", `k${i}`, `n${i}`)));
    await rig.drained();
    expect(await rig.read("a")).toHaveLength(400);
  });

  it("waits quietly while it has no lanes, also when it was woken", async () => {
    await leasesOf("holder").renew();
    const idle = rig.startRelay();
    await eventually(() => idle.relay.health().listener === "live");
    await rig.database.query("NOTIFY outbox");
    await new Promise((resolve) => setTimeout(resolve, 100));
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const used = process.cpuUsage(before);
    expect((used.user + used.system) / 1000).toBeLessThan(300);
    expect(idle.relay.health().laneGroups).toBe(0);
  });
});
