import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import { applyChanges } from "../../services/install/config-files.ts";
import type { InstallPlan } from "../../services/install/plan-install.ts";
import { planInstall } from "../../services/install/plan-install.ts";
import type { HookForm, RuntimeRoom } from "../../services/platform/runtime-room.ts";
import { installClient } from "../runtimes/client-cache.ts";
import type { RigRun, RuntimeRig } from "../runtimes/runtime-rig.ts";
import { createRuntimeRig } from "../runtimes/runtime-rig.ts";
import type { Bench, Row } from "./figure.ts";
import { median, toRow } from "./figure.ts";
import { openGate } from "./gate-under-test.ts";

/** Added time per tool call that the design allows, by form. */
const budgetMs: Readonly<Record<HookForm, number>> = { http: 10, plugin: 10, shell: 15, node: 75 };
const callsPerRun = 21;
/** What each call prints. */
const said = "measured-call-ran";
const shimRuns = 20;

/** What a tool call costs in the real client, beside the same client without a hook; and a shim beside curl. */
export async function hooks(bench: Bench): Promise<Row[]> {
  const database = await bench.database("hooks");
  const { target } = await openGate(bench, database);
  const token = target.headers["authorization"]?.replace("Bearer ", "") ?? "";
  const rows: Row[] = [];
  const chosen = process.env["CLIENT"];
  for (const room of runtimeRooms.values()) {
    if (chosen !== undefined && chosen !== room.adapter.runtime) continue;
    const rig = createRuntimeRig(room, installClient(room.adapter.runtime, room.drive));
    bench.onEnd(() => Promise.resolve(rig.close()));
    rows.push(...(await measureClient(bench, room, rig, { gateUrl: target.url, token })));
  }
  rows.push(await measureShim(bench, { gateUrl: target.url, token }));
  return rows;
}

interface Where {
  readonly gateUrl: string;
  readonly token: string;
}

/** In place of ours, what costs nothing: what remains is the client's own way of running a hook of this form. */
const emptyShims = {
  "hook.sh": "cat >/dev/null\n",
  "hook.mjs": "process.stdin.resume();\n",
};
function emptyOut({ ownFiles }: InstallPlan): void {
  for (const { path } of ownFiles) {
    const name = basename(path);
    if (isEmptyShim(name)) writeFileSync(path, emptyShims[name]);
  }
}
const isEmptyShim = (name: string): name is keyof typeof emptyShims => Object.hasOwn(emptyShims, name);

/** A server in the gate's place that has no objection to anything, at once. */
async function startYesGate(bench: Bench): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => response.setHeader("content-type", "application/json").end("{}"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  bench.onEnd(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

async function measureClient(bench: Bench, room: RuntimeRoom, rig: RuntimeRig, where: Where): Promise<Row[]> {
  const { runtime } = room.adapter;
  const main = Array.from({ length: callsPerRun }, () => ({
    calls: [room.drive.tools.shell(`echo ${said}`)],
  }));
  const perCallMs = async (hooks: Partial<RigRun> = {}): Promise<number> => {
    const { requestedAtMs, told } = await rig.run({ script: { main }, ...hooks });
    // A refusal would be quick: only a call that ran counts.
    if (told.length < callsPerRun || told.some(({ text }) => !text.includes(said)))
      throw new Error(`${runtime} did not run every call: ${told[0]?.text ?? "none"}`);
    // From one request of the model to the next: the tool call with its hooks, and nothing else.
    return median(requestedAtMs.slice(1).map((atMs, index) => atMs - (requestedAtMs[index] ?? atMs)));
  };
  const yesGate = await startYesGate(bench);
  const emptyHooks = (form: HookForm): Partial<RigRun> | null => {
    if (form === "plugin") return null;
    return { ...where, form, ...(form === "http" ? { gateUrl: yesGate } : { spoil: emptyOut }) };
  };
  const rows: Row[] = [];
  for (const form of room.setup.forms) {
    const added: number[] = [];
    const without: number[] = [];
    const byEmpty: number[] = [];
    const empty = emptyHooks(form);
    for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
      const bareMs = await perCallMs();
      added.push((await perCallMs({ ...where, form })) - bareMs);
      if (empty !== null) byEmpty.push((await perCallMs(empty)) - bareMs);
      without.push(bareMs);
      bench.progress(
        `${runtime} ${form}: +${String(added.at(-1))} ms beside ${String(bareMs)} ms without a hook, ${byEmpty.length === 0 ? "" : `+${String(byEmpty.at(-1))} ms with one that does nothing`}`,
      );
    }
    rows.push(
      toRow(
        {
          name: `${runtime}, ${form}: added per tool call`,
          unit: "ms",
          against: "budget",
          other: "design",
          target: { better: "lower", ratio: 1 },
          command: bench.command,
          note: `median of ${String(callsPerRun - 1)} calls, before and after hook together; without a hook ${String(median(without))} ms${byEmpty.length === 0 ? "" : `, hooks that do nothing add ${String(median(byEmpty))} ms`}`,
        },
        added,
        added.map(() => budgetMs[form]),
      ),
    );
  }
  return rows;
}

async function measureShim(bench: Bench, { gateUrl, token }: Where): Promise<Row> {
  const room = [...runtimeRooms.values()].find(({ setup }) => setup.forms.includes("shell"));
  if (room === undefined) throw new Error("no runtime takes a shell form");
  const home = mkdtempSync(join(tmpdir(), "fabric-bench-shim-"));
  bench.onEnd(() => Promise.resolve(rmSync(home, { recursive: true, force: true })));
  const plan = await planInstall({
    room,
    home,
    form: "shell",
    gateUrl,
    token,
    program: "client",
    clientVersion: "0.0.0",
    tools: { hasTimeout: true, node: process.execPath },
  });
  await applyChanges(plan.ownFiles);
  const { runtime } = room.adapter;
  const file = join(bench.projectDir, "test", "corpus", "hooks", runtime, "PreToolUse.Bash.json");
  const input = readFileSync(file);
  const time = (command: string, args: readonly string[]): number => {
    const startedMs = performance.now();
    const { status, stderr } = spawnSync(command, args, { input });
    if (status !== 0) throw new Error(`${command} ended with ${String(status)}: ${stderr.toString()}`);
    return performance.now() - startedMs;
  };
  const curlArgs = ["-sS", "-o", "/dev/null", "-H", `authorization: Bearer ${token}`];
  const url = `${gateUrl}/v1/hooks/${runtime}`;
  const json = ["-H", "content-type: application/json", "--data-binary", "@-", url];
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
    const shim: number[] = [];
    const curl: number[] = [];
    for (let run = 0; run < shimRuns; run += 1) {
      curl.push(time("curl", [...curlArgs, ...json]));
      shim.push(time("/bin/sh", ["-c", plan.target.gatingCommand]));
    }
    ours.push(median(shim));
    theirs.push(median(curl));
  }
  return toRow(
    {
      name: "shell shim, whole hook",
      unit: "ms",
      against: "limit",
      other: "curl alone, same request",
      command: bench.command,
      note: `median of ${String(shimRuns)} interleaved runs, the gate's decision included`,
    },
    ours,
    theirs,
  );
}
