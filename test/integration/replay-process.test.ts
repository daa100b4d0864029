import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { audit } from "../../processors/audit/audit.ts";
import { eventually } from "../harness/eventually.ts";
import { modelEvent } from "../harness/host-rig.ts";
import type { ReplayRig } from "../harness/replay-rig.ts";
import { openReplayRig, runsInProcesses } from "../harness/replay-rig.ts";
import { projectDir } from "../harness/stack.ts";

/** Runs in processes of their own, as the built command line starts them. */

const type = "agent.model.completed" as const;
const count = 15_000;
let rig: ReplayRig;
const children: ChildProcess[] = [];
beforeAll(async () => {
  rig = await openReplayRig([type]);
  for (let from = 0; from < count; from += 5_000)
    await rig.publish(Array.from({ length: 5_000 }, (_, n) => modelEvent(from + n)));
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await rig.close();
});

const sre = (...argv: string[]) => ["replay", ...argv, "--token-file", rig.tokenFile];

/** The built command line, as a shell starts it. */
function fabric(argv: readonly string[]): {
  readonly child: ChildProcess;
  readonly ended: Promise<{ exit: number | null; stderr: string }>;
} {
  const child = spawn(process.execPath, [join(projectDir, "dist/services/app/main.js"), ...argv], {
    env: { PATH: process.env["PATH"], FABRIC_ENV_FILE: join(rig.root, ".fabric/local/services/fabric.env") },
    stdio: ["ignore", "ignore", "pipe"],
  });
  children.push(child);
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
  return { child, ended: new Promise((resolve) => child.once("close", (exit) => resolve({ exit, stderr }))) };
}

async function readSoFar(shadow: string): Promise<number> {
  const { rows } = await rig.host.sql.query<{ n: number }>(
    `SELECT coalesce(sum(next_offset), 0)::int AS n FROM "shadow_${shadow}_host".watermarks`,
  );
  return rows[0]?.n ?? 0;
}

describe("a run in a process of its own", { timeout: 180_000 }, () => {
  it("goes on where it was when all of it is killed in the middle, and no row is there twice or missing", async () => {
    const argv = sre("start", "--processor", "audit", "--shadow", "killed");
    const first = fabric(argv);
    const at = await eventually(
      () => readSoFar("killed"),
      (n) => n > 0,
      { deadlineMs: 60_000, pollMs: 5 },
    );
    first.child.kill("SIGKILL");
    await first.ended;
    expect(at).toBeLessThan(count);
    const second = await fabric(argv).ended;
    expect(second).toMatchObject({ exit: 0 });
    expect(second.stderr).toContain("100 %  15,000 of 15,000 records");
    const { rows } = await rig.host.sql.query(
      "SELECT count(*)::int AS rows, count(DISTINCT (topic, partition, kafka_offset))::int AS places FROM shadow_killed.trail",
    );
    expect(rows).toEqual([{ rows: count, places: count }]);
    const acts = await rig.host.sql.query("SELECT act FROM replay.acts WHERE shadow = 'killed' ORDER BY id");
    expect(acts.rows).toEqual([{ act: "started" }, { act: "resumed" }]);
    const live = rig.startLive([audit]);
    await eventually(
      async () =>
        (await rig.host.sql.query<{ n: number }>("SELECT count(*)::int AS n FROM audit.trail")).rows[0]?.n,
      (n) => n === count,
      { deadlineMs: 60_000, pollMs: 200 },
    );
    await live.stop();
    const diff = await rig.fabric(["replay", "diff", "killed", "--json"], { runs: runsInProcesses() });
    expect(diff).toMatchObject({ exit: 0, json: { isEmpty: true } });
  });

  it("leaves no consumer group behind", async () => {
    // The broker keeps the group of a killed process until its session has run out; the command waits for that.
    const dropped = await rig.fabric(sre("drop", "killed", "--json"));
    expect(dropped).toMatchObject({ exit: 0, json: { dropped: true, groups: [] } });
    const { groups } = await rig.host.admin.listGroups();
    expect(
      groups.map(({ groupId }) => groupId).filter((id) => id.startsWith(`${rig.host.prefix}shadow-`)),
    ).toEqual([]);
  });

  it("finds nothing of ours in its environment, and its letters go to no vault", async () => {
    const file = join(rig.root, "curious.mjs");
    await writeFile(
      file,
      `export const curious = { name: "audit", version: "9", topics: ["${type}"], emits: [],
        project() { throw new Error(Object.keys(process.env).filter((name) => /FABRIC|URL|PASS|TOKEN/.test(name)).join() || "nothing"); },
        apply: () => Promise.resolve([]) };`,
    );
    const runs = runsInProcesses();
    const started = await rig.fabric(
      sre("start", "--processor", "audit", "--version", file, "--to", "5", "--shadow", "curious"),
      { runs },
    );
    expect(started).toMatchObject({ exit: 0 });
    const { rows } = await rig.host.sql.query(
      "SELECT DISTINCT detail, payload_ref, (SELECT count(*)::int FROM vault.evidence) AS vault FROM shadow_curious_host.letters",
    );
    expect(rows).toEqual([
      { detail: expect.stringContaining("nothing") as unknown, payload_ref: "log:", vault: 0 },
    ]);
    const diff = await rig.fabric(["replay", "diff", "curious"], { runs });
    expect(diff.exit).toBe(1);
    expect(diff.stdout).toContain("10 records set aside in the shadow alone");
  });

  it("reads a version in TypeScript, and a canary tells what it would change, with one command", async () => {
    const file = join(rig.root, "audit-two.ts");
    await writeFile(
      file,
      `import { audit } from "${projectDir}/processors/audit/audit.ts";
       import type { Processor } from "${projectDir}/processors/kit/processor.ts";
       export const changed: Processor = { ...audit, version: "2", project: (event, source) =>
         audit.project(event, source).map((row) => ({ ...(row as object), ...(source.offset === 3n ? { origin: "agent" } : {}) })) };`,
    );
    const canary = await rig.fabric(
      sre("canary", "--processor", "audit", "--version", file, "--last", "1h", "--json"),
      { runs: runsInProcesses() },
    );
    expect({ exit: canary.exit, stderr: canary.stderr }).toMatchObject({ exit: 1 });
    expect(canary.json).toMatchObject({
      records: count,
      isEmpty: false,
      tables: [{ table: "trail", changed: 2, onlyLive: 0, onlyShadow: 0 }],
    });
    const { rows } = await rig.host.sql.query("SELECT name FROM replay.shadows WHERE name LIKE 'canary%'");
    expect(rows).toEqual([]);
  });
});
