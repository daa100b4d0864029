import { spawn } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPayload } from "../../services/platform/vault-seal.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { claudeCall, claudeResult } from "../harness/hook-payloads.ts";
import type { WrongGate } from "../runtimes/runtime-rig.ts";
import { startWrongGate } from "../runtimes/runtime-rig.ts";

const shims = fileURLToPath(new URL("../../services/install/shim/", import.meta.url));
const kit = fileURLToPath(new URL("../../services/platform/plugin-kit/", import.meta.url));
const inputBytes = 5 * 2 ** 20;
const longAgo = new Date("2026-01-01T00:00:00Z");

let rig: GateRig;
let gate: RunningGate;
let token: string;
let folder: string;
beforeAll(async () => {
  rig = await createGateRig();
  gate = await rig.gate();
  token = await rig.token();
});
afterAll(() => rig.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bad-input-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Shim = "hook.sh" | "hook.mjs";
interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
/** Starts a shim with its files beside it, as it is installed, and gives it a payload. */
function start(
  shim: Shim,
  mode: "gate" | "observe",
  body: string,
  gateUrl = gate.url,
  bearer = token,
): ReturnType<typeof spawn> {
  writeFileSync(join(folder, "url"), `${gateUrl}/v1/hooks/claude-code\n`);
  writeFileSync(join(folder, "token"), `${bearer}\n`);
  writeFileSync(join(folder, "deadlines"), "5 3 0\n");
  copyFileSync(join(shims, shim), join(folder, shim));
  const program = shim === "hook.sh" ? "/bin/sh" : process.execPath;
  const child = spawn(program, [join(folder, shim), mode, "hash"], { detached: true });
  child.stdin.on("error", () => undefined);
  child.stdin.end(body);
  return child;
}
async function run(...args: Parameters<typeof start>): Promise<Ended> {
  const child = start(...args);
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((done) => child.on("close", done));
  return { code, stdout, stderr };
}
const spooled = (): readonly string[] =>
  existsSync(join(folder, "spool"))
    ? readdirSync(join(folder, "spool")).filter((name) => name.endsWith(".json"))
    : [];
const oversized = async (): Promise<readonly string[]> =>
  (await rig.events()).flatMap((one) =>
    one.type === "fabric.adapter.unrecognized" && one.redacted_summary.problem === "too_large"
      ? [one.event_id]
      : [],
  );
const resultsOf = async (callId: string): Promise<number> =>
  (await rig.events()).filter(
    ({ type, execution }) => type === "agent.tool.completed" && execution.tool_call_id === callId,
  ).length;

/** A plugin's way to the gate, as one process of a client has it. */
interface PluginGate {
  ask(payload: unknown): Promise<{ readonly decision: string; readonly reason?: string }>;
  tell(payload: unknown): Promise<void>;
}
async function openPlugin(name: string, gateUrl = gate.url): Promise<PluginGate> {
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  copyFileSync(join(kit, "gate-client.mjs"), join(own, "gate-client.mjs"));
  writeFileSync(join(folder, "token"), token);
  const settings = {
    gate_url: gateUrl,
    token_file: join(folder, "token"),
    deadline_ms: 5_000,
    spool_file: join(folder, "spool.jsonl"),
  };
  writeFileSync(join(own, "fabric.json"), JSON.stringify(settings));
  const made = (await import(pathToFileURL(join(own, "gate-client.mjs")).href)) as {
    openGate(options: object): PluginGate;
  };
  return made.openGate({ runtime: "opencode", version: "1", folder: own });
}
const recorded = (name: string): Record<string, unknown> =>
  JSON.parse(
    readFileSync(new URL(`../corpus/hooks/opencode/${name}.json`, import.meta.url), "utf8"),
  ) as Record<string, unknown>;

describe.each(["hook.sh", "hook.mjs"] as const)("bad input to the command hook %s", (shim) => {
  it("half a JSON document stops the call, says why, and its bytes are kept", async () => {
    const half = JSON.stringify(claudeCall("echo half")).slice(0, 80);
    const { code, stderr } = await run(shim, "gate", half);
    expect([code, stderr]).toEqual([2, expect.stringContaining("PAYLOAD_UNRECOGNIZED")]);
    const event = (await rig.events()).at(-1);
    expect(event?.type).toBe("fabric.adapter.unrecognized");
    const kept = await openPayload(rig.database(rig.test.url), rig.keys, event?.payload_ref ?? "");
    expect(kept.bytes.toString()).toBe(half);
  });

  it("a tool input of 5 MB stops the call and says what to do; as a result it blocks no later one", async () => {
    const asked = claudeCall(`echo ${"x".repeat(inputBytes)}`);
    const { code, stderr } = await run(shim, "gate", JSON.stringify(asked));
    expect([code, stderr]).toEqual([2, expect.stringContaining("BODY_TOO_LARGE")]);
    expect(stderr).toContain("smaller calls");
    const tool_response = { stdout: "x".repeat(inputBytes) };
    const before = await oversized();
    expect((await run(shim, "observe", JSON.stringify(claudeResult({ tool_response })))).code).toBe(0);
    expect(spooled()).toEqual([]);
    // That something came and was not taken in is on record.
    const event = await eventually(async () => (await oversized()).find((id) => !before.includes(id)));
    expect(event).toMatch(/^evt_/);
  });

  it("a call waits for the reports of earlier ones, and is refused while they cannot be delivered", async () => {
    const dead = await startWrongGate("error");
    const place = { session_id: `late-${shim}` };
    const call = claudeCall("ls", place);
    const result = {
      ...claudeResult({ tool_response: { stdout: "x" } }),
      ...place,
      tool_use_id: `late-${shim}`,
    };
    await run(shim, "observe", JSON.stringify(result), dead.url);
    expect(spooled()).toHaveLength(1);
    const refused = await run(shim, "gate", JSON.stringify(call), dead.url);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("could not be delivered")]);
    expect(spooled()).toHaveLength(1);
    dead.close();
    expect((await run(shim, "gate", JSON.stringify(call))).code).toBe(0);
    expect(spooled()).toEqual([]);
    const told = (await rig.events())
      .filter(({ execution }) => execution.session_id === place.session_id)
      .map(({ type, execution }) => [type, execution.tool_call_id]);
    expect(told[0]).toEqual(["agent.tool.completed", `late-${shim}`]);
    expect(told.map(([type]) => type)).toContain("agent.tool.requested");
  });

  it("an answer that is not the gate's stops the call", async () => {
    for (const kind of ["garbage", "error", "cut"] as const) {
      const wrong = await startWrongGate(kind);
      try {
        const { code, stderr } = await run(shim, "gate", JSON.stringify(claudeCall("ls")), wrong.url);
        expect([kind, code, stderr]).toEqual([kind, 2, expect.stringContaining("GATE_UNREACHABLE")]);
      } finally {
        wrong.close();
      }
    }
  });

  it("a report whose client is killed while it is sent is delivered by a later one", async () => {
    const silent = await startWrongGate("silent");
    const lost = claudeResult({ tool_use_id: `killed-${shim}` });
    try {
      const child = start(shim, "observe", JSON.stringify(lost), silent.url);
      const waits = join(folder, "spool");
      await eventually(() =>
        expect(readdirSync(waits).filter((name) => name.startsWith(".new-"))).toHaveLength(1),
      );
      await eventually(() =>
        expect(readFileSync(join(waits, readdirSync(waits)[0] ?? ""), "utf8")).not.toBe(""),
      );
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      const [left = ""] = readdirSync(waits);
      utimesSync(join(waits, left), longAgo, longAgo);
    } finally {
      silent.close();
    }
    // Something else waits, so that the next report that is taken looks.
    writeFileSync(join(folder, "spool", "1.json"), JSON.stringify(claudeResult({ tool_use_id: "waited" })));
    await run(shim, "observe", JSON.stringify(claudeResult()));
    expect(await resultsOf(`killed-${shim}`)).toBe(1);
  });

  it("two adapters of one client deliver what waits once each", async () => {
    const waits = join(folder, "spool");
    mkdirSync(waits);
    const ids = Array.from({ length: 6 }, (_, at) => `both-${shim}-${String(at)}`);
    for (const id of ids)
      writeFileSync(join(waits, `${id}.json`), JSON.stringify(claudeResult({ tool_use_id: id })));
    await Promise.all(
      [1, 2, 3].map((at) =>
        run(shim, "observe", JSON.stringify(claudeResult({ tool_use_id: `own-${shim}-${String(at)}` }))),
      ),
    );
    expect(spooled()).toEqual([]);
    expect(await Promise.all(ids.map(resultsOf))).toEqual(ids.map(() => 1));
  });

  it("clocks that are hours apart stop every call, and reports wait until they agree", async () => {
    // What the gate reads when its clock is ahead of the one that made the token.
    const early = await rig.token({ lifetimeSeconds: -7_200 });
    const id = `skewed-${shim}`;
    const asked = await run(shim, "gate", JSON.stringify(claudeCall("ls")), gate.url, early);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("TOKEN_INVALID")]);
    const report = JSON.stringify(claudeResult({ tool_use_id: id }));
    expect((await run(shim, "observe", report, gate.url, early)).code).toBe(0);
    expect(spooled()).toHaveLength(1);
    await run(shim, "observe", JSON.stringify(claudeResult()));
    expect(spooled()).toEqual([]);
    expect(await resultsOf(id)).toBe(1);
  });
});

describe("bad input to the part that runs inside a client", () => {
  const before = recorded("tool.execute.before.bash");
  const after = recorded("tool.execute.after.bash");
  const asked = (command: string, callID: string): object => ({
    ...before,
    input: { ...(before["input"] as object), callID },
    output: { args: { command, description: "x" } },
  });
  const report = (callID: string): object => ({ ...after, input: { ...(after["input"] as object), callID } });

  it("a tool input of 5 MB is refused with what to do", async () => {
    const plugin = await openPlugin("one");
    const answer = await plugin.ask(asked(`echo ${"x".repeat(inputBytes)}`, "large"));
    expect(answer).toMatchObject({
      decision: "deny",
      reason: expect.stringContaining("BODY_TOO_LARGE") as string,
    });
  });

  it("an answer that is not the gate's is a no", async () => {
    for (const kind of ["garbage", "error", "cut"] as const) {
      const wrong: WrongGate = await startWrongGate(kind);
      try {
        const plugin = await openPlugin(`wrong-${kind}`, wrong.url);
        const { decision, reason } = await plugin.ask(asked("ls", "garbage"));
        expect([kind, decision, reason]).toEqual([kind, "deny", expect.stringContaining("GATE_UNREACHABLE")]);
      } finally {
        wrong.close();
      }
    }
  });

  it("two adapters of one client deliver what waits once each, and what a killed one had taken", async () => {
    const [one, other] = [await openPlugin("one"), await openPlugin("other")];
    const ids = ["spooled-1", "spooled-2", "left-1", "left-2"];
    const linesOf = (names: readonly string[]): string =>
      names.map((id) => `${JSON.stringify(report(id))}\n`).join("");
    writeFileSync(join(folder, "spool.jsonl"), linesOf(ids.slice(0, 2)));
    const left = join(folder, "spool.jsonl.opencode-4242-killed.1");
    writeFileSync(left, linesOf(ids.slice(2)));
    utimesSync(left, longAgo, longAgo);
    const answers = await Promise.all([
      one.ask(asked("echo one", "one")),
      other.ask(asked("echo other", "other")),
      one.ask(asked("echo third", "third")),
    ]);
    expect(answers.map(({ decision }) => decision)).toEqual(["allow", "allow", "allow"]);
    await eventually(() =>
      expect(readdirSync(folder).filter((name) => name.startsWith("spool.jsonl"))).toEqual([]),
    );
    expect(await Promise.all(ids.map(resultsOf))).toEqual(ids.map(() => 1));
  });

  it("a report that the gate takes from nobody it knows waits for a token that it knows", async () => {
    const plugin = await openPlugin("one");
    writeFileSync(join(folder, "token"), await rig.token({ lifetimeSeconds: -7_200 }));
    await plugin.tell(report("unknown-speaker"));
    expect(await resultsOf("unknown-speaker")).toBe(0);
    expect((await plugin.ask(asked("ls", "refused"))).decision).toBe("deny");
    writeFileSync(join(folder, "token"), token);
    expect((await plugin.ask(asked("ls", "goes-on"))).decision).toBe("allow");
    expect(await resultsOf("unknown-speaker")).toBe(1);
  });
});

describe("a client that is killed while the gate decides", () => {
  it("leaves one decision, and the same call asked again gets that one", async () => {
    const body = JSON.stringify(claudeCall("echo killed-in-flight"));
    const decided = async (): Promise<number> =>
      Number(
        (
          await rig.admin.query<{ n: string }>(
            "SELECT count(*) AS n FROM gate.decisions WHERE request -> 'input' ->> 'command' = 'echo killed-in-flight'",
          )
        ).rows[0]?.n,
      );
    const request = httpRequest(`${gate.url}/v1/hooks/claude-code`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    });
    request.on("error", () => undefined);
    // The whole body is there, and nobody is left to read the answer.
    request.end(body, () => request.destroy());
    await eventually(async () => expect(await decided()).toBe(1));
    expect(await gate.post("/v1/hooks/claude-code", body)).toMatchObject({ status: 200, json: {} });
    expect(await decided()).toBe(1);
  });
});
