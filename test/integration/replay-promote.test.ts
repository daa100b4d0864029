import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Processor } from "../../processors/kit/processor.ts";
import { cost } from "../harness/replay-cost.ts";
import { modelEvent } from "../harness/host-rig.ts";
import { eventually } from "../harness/eventually.ts";
import type { ReplayRig } from "../harness/replay-rig.ts";
import { openReplayRig, runsHere } from "../harness/replay-rig.ts";

/** A shadow takes the live projection's place while events come. */

const type = "agent.model.completed" as const;
let rig: ReplayRig;
beforeEach(async () => {
  rig = await openReplayRig(cost.topics);
});
afterEach(async () => {
  await rig.close();
});

const sre = (...argv: string[]) => ["replay", ...argv, "--token-file", rig.tokenFile];
const many = (count: number) => Array.from({ length: count }, (_, n) => modelEvent(n));
const usage = async (): Promise<{ rows: number; events: number }> => {
  const { rows } = await rig.host.sql.query<{ rows: number; events: number }>(
    "SELECT count(*)::int AS rows, count(DISTINCT event_id)::int AS events FROM cost.usage",
  );
  return rows[0] ?? { rows: 0, events: 0 };
};
const tableOid = async (): Promise<unknown> =>
  (await rig.host.sql.query("SELECT 'cost.usage'::regclass::oid::text AS oid")).rows[0];

describe("promote", { timeout: 180_000 }, () => {
  it("loses and doubles nothing while events come, and views show the new tables", async () => {
    const live = rig.startLive([cost]);
    await rig.publish(many(2_000));
    await rig.settled(cost);
    expect(await rig.fabric(sre("start", "--processor", "cost", "--shadow", "again"))).toMatchObject({
      exit: 0,
    });
    expect(await rig.fabric(sre("promote", "again"))).toMatchObject({ exit: 2 });
    let sent = 2_000;
    let isOver = false;
    const traffic = (async () => {
      while (!isOver) {
        await rig.publish(many(50));
        sent += 50;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    try {
      const diff = await rig.fabric(["replay", "diff", "again", "--json"]);
      expect({ exit: diff.exit, stderr: diff.stderr, json: diff.json }).toMatchObject({ exit: 0 });
      const refused = await rig.fabric([...sre("promote", "again"), "--json"]);
      expect(refused).toMatchObject({
        exit: 2,
        json: { error: { message: expect.stringContaining("nobody has accepted") as unknown } },
      });
      expect(await rig.fabric(sre("accept", "again", "--reason", "equal"))).toMatchObject({ exit: 0 });
      const before = await tableOid();
      const promoted = await rig.fabric([...sre("promote", "again"), "--json"]);
      expect({ ...promoted, stdout: "" }).toMatchObject({ exit: 0, json: { processor: "cost" } });
      expect(await tableOid()).not.toEqual(before);
      await eventually(async () => (await usage()).rows > sent - 200, Boolean, { deadlineMs: 30_000 });
    } finally {
      isOver = true;
      await traffic;
    }
    await rig.settled(cost);
    await live.stop();
    expect(await usage()).toEqual({ rows: sent, events: sent });
    const { rows: views } = await rig.host.sql.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM analytics.cost_entries",
    );
    const { rows: tables } = await rig.host.sql.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM cost.entries",
    );
    expect(views).toEqual(tables);
    const { rows: grants } = await rig.host.sql.query<{
      can: boolean;
      old: boolean;
      analyst: boolean;
      options: string[];
    }>(
      `SELECT has_table_privilege('fabric_host', 'cost.usage', 'INSERT') AS can,
         has_table_privilege('fabric_host', 'shadow_again.usage', 'INSERT') AS old,
         has_table_privilege('fabric_analyst', 'analytics.cost_entries', 'SELECT') AS analyst,
         (SELECT reloptions FROM pg_class WHERE oid = 'analytics.cost_entries'::regclass) AS options`,
    );
    expect(grants).toEqual([{ can: true, old: false, analyst: true, options: ["security_invoker=true"] }]);
    expect(await rig.fabric(sre("drop", "again"))).toMatchObject({ exit: 0 });
    expect(await usage()).toEqual({ rows: sent, events: sent });
  });

  it("shows exactly the rows of a planted change, and lets only hosts of the new version go on", async () => {
    const changed: Processor = {
      ...cost,
      version: "2",
      project: (event, source) =>
        cost.project(event, source).map((change) => {
          const { usage: row, ...rest } = change as { usage: { output_tokens: bigint } };
          return { ...rest, usage: row.output_tokens % 100n === 7n ? { ...row, output_bytes: 1n } : row };
        }),
    };
    const runs = runsHere({ "cost.ts": changed });
    const live = rig.startLive([cost]);
    await rig.publish(many(1_000));
    await rig.settled(cost);
    await rig.host.sql.query(
      "INSERT INTO contracts.readers (consumer, consumer_version, event_type, max_major, must_understand) VALUES ('cost', '1', $1, 1, '{}')",
      [type],
    );
    const file = "processors/cost/cost.ts";
    const start = sre("start", "--processor", "cost", "--version", file, "--shadow", "two");
    expect(await rig.fabric(start, { runs })).toMatchObject({ exit: 0 });
    const diff = await rig.fabric(["replay", "diff", "two", "--json", "--samples", "3"], { runs });
    expect(diff.exit).toBe(1);
    const { tables } = diff.json as {
      tables: {
        table: string;
        changed: number;
        onlyLive: number;
        onlyShadow: number;
        samples: { columns: object }[];
      }[];
    };
    const differing = tables.filter((one) => one.changed + one.onlyLive + one.onlyShadow > 0);
    expect(differing).toMatchObject([{ table: "usage", changed: 10, onlyLive: 0, onlyShadow: 0 }]);
    expect(differing[0]?.samples).toHaveLength(3);
    for (const { columns } of differing[0]?.samples ?? [])
      expect(columns).toEqual({ output_bytes: ["0", "1"] });
    expect(await rig.fabric(sre("accept", "two", "--reason", "bytes are counted"))).toMatchObject({
      exit: 0,
    });
    expect(await rig.fabric(sre("promote", "two"), { runs })).toMatchObject({ exit: 0 });
    await rig.publish(many(10));
    const stopped = await rig.host.sql.query<{ cause: string }>(
      "SELECT DISTINCT stopped_cause AS cause FROM host.watermarks WHERE processor = 'cost'",
    );
    expect(stopped.rows).toEqual([{ cause: "promoted:2" }]);
    await live.stop();
    const next = rig.startLive([changed]);
    await rig.settled(cost);
    await next.stop();
    expect(await usage()).toEqual({ rows: 1_010, events: 1_010 });
  });

  it("is done by the same command again, or undone by drop, when it was killed while the live processor stood still", async () => {
    const live = rig.startLive([cost]);
    await rig.publish(many(100));
    await rig.settled(cost);
    const fence = (name: string) =>
      rig.host.sql.query(
        "UPDATE host.watermarks SET stopped_cause = $1, stopped_at = now(), epoch = epoch + 1 WHERE processor = 'cost'",
        [`promote:${name}`],
      );
    await rig.fabric(sre("start", "--processor", "cost", "--shadow", "killed"));
    expect(await rig.fabric(["replay", "diff", "killed"])).toMatchObject({ exit: 0 });
    await rig.fabric(sre("accept", "killed", "--reason", "equal"));
    await fence("killed");
    await rig.publish(many(10));
    expect(await rig.fabric(sre("promote", "killed"))).toMatchObject({ exit: 0 });
    await rig.settled(cost);
    expect(await usage()).toEqual({ rows: 110, events: 110 });
    await fence("given-up");
    await rig.fabric(sre("start", "--processor", "cost", "--shadow", "given-up"));
    await rig.publish(many(10));
    expect(await rig.fabric(sre("drop", "given-up"))).toMatchObject({ exit: 0 });
    await rig.settled(cost);
    await live.stop();
    expect(await usage()).toEqual({ rows: 120, events: 120 });
  });

  it("refuses the audit trail, a part of the log, and new code under the old version", async () => {
    const live = rig.startLive([cost]);
    await rig.publish(many(20));
    await rig.settled(cost);
    await live.stop();
    await rig.fabric(sre("start", "--processor", "cost", "--from", "5", "--shadow", "part"));
    await rig.fabric(["replay", "diff", "part"]);
    await rig.fabric(sre("accept", "part", "--reason", "try"));
    expect((await rig.fabric(sre("promote", "part"))).stderr).toContain("a part of the log");
    await rig.fabric(sre("start", "--processor", "audit", "--shadow", "trail"));
    expect((await rig.fabric(sre("promote", "trail"))).stderr).toContain("evidence");
  });
});
