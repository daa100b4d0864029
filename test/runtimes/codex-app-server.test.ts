import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drive } from "../../services/adapters/codex/drive.ts";
import { room } from "../../services/adapters/codex/room.ts";
import { startProxy } from "../../services/adapters/codex/app-server/proxy.ts";
import { spawnServer } from "../../services/adapters/codex/app-server/server-wire.ts";
import { cleanEnvironment } from "../../services/doctor/run-client.ts";
import { applyChanges } from "../../services/install/config-files.ts";
import { planInstall } from "../../services/install/plan-install.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import type { ScriptedCall } from "../harness/scripted-responses.ts";
import { startScriptedModel } from "../harness/scripted-responses.ts";
import { workPolicy } from "../harness/work-policy.ts";
import { installClient } from "./client-cache.ts";

let program: string;
let version: string;
let rig: GateRig;
let gate: RunningGate;
let token: string;
const folders: string[] = [];
beforeAll(async () => {
  ({ program, version } = installClient("codex", drive));
  rig = await createGateRig();
  gate = await rig.gate({ policy: () => workPolicy() });
  token = await rig.token();
}, 600_000);
afterAll(async () => {
  await rig.close();
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

type Message = Readonly<Record<string, unknown>>;
interface Session {
  readonly workspace: string;
  /** What the client was sent, in order. */
  readonly received: readonly Message[];
  readonly told: string;
  readonly threadId: string;
  has(file: string): boolean;
}

const config = (modelUrl: string): string => `
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "${modelUrl}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[features]
multi_agent = true
apps = false
daemon_auto_start = false
plugins = false
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
trace_exporter = "none"
metrics_exporter = "none"
`;

async function installHooks(home: string, workspace: string, gateUrl: string): Promise<void> {
  const plan = await planInstall({
    room,
    home,
    form: "shell",
    gateUrl,
    token,
    program,
    clientVersion: version,
    tools: { hasTimeout: true, node: process.execPath },
  });
  await applyChanges([...plan.ownFiles, ...plan.changes]);
  await mkdir(join(home, "tmp"), { recursive: true });
  const env = cleanEnvironment(home, program);
  await room.setup.consent?.give({ argv: [program], env, workingDirectory: workspace, home }, plan.target);
}

/** Runs one turn of the real server behind the proxy, and ends both. */
const runTurn = async (
  script: readonly (readonly ScriptedCall[])[],
  options: {
    readonly gateUrl?: string;
    readonly sandbox?: "keep" | "none";
    readonly threadParams?: Message;
    /** Requests of the client before the turn. */
    readonly before?: (threadId: string, workspace: string) => readonly { method: string; params: Message }[];
    readonly meanwhile?: (threadId: string) => Promise<void>;
    /** The hooks too are installed into the client's home, and trusted. */
    readonly hasHooks?: boolean;
  } = {},
): Promise<Session> => {
  const base = await mkdtemp(join(tmpdir(), "app-server-"));
  folders.push(base);
  const [workspace, home] = [join(base, "workspace"), join(base, "home")];
  await mkdir(join(home, ".codex"), { recursive: true });
  await mkdir(workspace);
  const model = await startScriptedModel(script);
  await writeFile(join(home, ".codex", "config.toml"), config(model.url));
  if (options.hasHooks === true) await installHooks(home, workspace, options.gateUrl ?? gate.url);
  const [input, output] = [new PassThrough(), new PassThrough()];
  const proxy = startProxy({
    server: spawnServer({
      argv: [program, "app-server"],
      workingDirectory: workspace,
      environment: {
        PATH: process.env["PATH"] ?? "",
        HOME: home,
        SCRIPTED_API_KEY: "made-up",
        LANG: "C.UTF-8",
      },
    }),
    gateUrl: options.gateUrl ?? gate.url,
    token: () => token,
    pins: { sandbox: options.sandbox ?? "none" },
    client: { input, output },
    pollMs: 50,
    // Two cores serve several servers here.
    timeoutMs: 20_000,
  });
  const received: Message[] = [];
  createInterface({ input: output }).on("line", (line) => received.push(JSON.parse(line) as Message));
  let ids = 100;
  const send = (message: Message): void => void input.write(`${JSON.stringify(message)}\n`);
  const call = async (method: string, params: Message): Promise<Message> => {
    const id = (ids += 1);
    send({ id, method, params });
    const reply = await eventually(() => received.find((one) => one["id"] === id), Boolean, {
      deadlineMs: 30_000,
      what: `an answer to ${method}`,
    });
    return reply ?? {};
  };
  try {
    await call("initialize", {
      clientInfo: { name: "fabric-test", title: "test", version: "1" },
      capabilities: { experimentalApi: true },
    });
    send({ method: "initialized" });
    const started = await call("thread/start", { cwd: workspace, ...options.threadParams });
    const { thread } = started["result"] as { thread: { id: string } };
    for (const { method, params } of options.before?.(thread.id, workspace) ?? []) await call(method, params);
    await call("turn/start", { threadId: thread.id, input: [{ type: "text", text: "go" }] });
    await options.meanwhile?.(thread.id);
    await eventually(
      () =>
        received.find(
          (one) =>
            one["method"] === "turn/completed" &&
            (one["params"] as { threadId: string }).threadId === thread.id,
        ),
      Boolean,
      { deadlineMs: 45_000, what: "the end of the turn" },
    );
    input.end();
    await proxy.ended;
    return {
      workspace,
      received,
      told: model.told(),
      threadId: thread.id,
      has: (file) => existsSync(join(workspace, file)),
    };
  } finally {
    proxy.stop();
    model.close();
  }
};
const shell = (command: string): ScriptedCall => ({ name: "exec_command", input: { cmd: command } });
const typesOf = async (session: string): Promise<string[]> =>
  (await rig.events()).filter((event) => event.execution.session_id === session).map(({ type }) => type);

describe("the real App Server behind the proxy", () => {
  it("runs what the gate allows, although the client asked never to be asked, and its story is recorded", async () => {
    const one = await runTurn([[shell("echo hi > out.txt")]], {
      threadParams: { approvalPolicy: "never", sandbox: "danger-full-access" },
    });
    expect(one.has("out.txt")).toBe(true);
    const types = await typesOf(one.threadId);
    for (const type of [
      "agent.session.started",
      "agent.turn.started",
      "agent.prompt.submitted",
      "agent.tool.requested",
      "agent.tool.authorized",
      "agent.tool.completed",
      "agent.model.completed",
      "agent.turn.completed",
    ])
      expect(types, type).toContain(type);
    expect(types).not.toContain("agent.effect.ungated");
  });

  it("does not run what the gate denies, tells the model that it was rejected, and the client why", async () => {
    const one = await runTurn([
      [shell("touch pushed.txt && git push --force")],
      [shell("echo ok > after.txt")],
    ]);
    expect(one.has("pushed.txt")).toBe(false);
    expect(one.has("after.txt")).toBe(true);
    expect(one.told).toMatch(/rejected/i);
    expect(JSON.stringify(one.received)).toContain("STATIC_DENY");
    expect(await typesOf(one.threadId)).toContain("agent.tool.denied");
  });

  it("writes no patch and runs no command while the gate is away", async () => {
    const patch = "*** Begin Patch\n*** Add File: patched.txt\n+hello\n*** End Patch\n";
    const script = [[shell("echo hi > out.txt")], [{ name: "apply_patch", input: patch }]];
    const away = await runTurn(script, { gateUrl: "http://127.0.0.1:1" });
    expect([away.has("out.txt"), away.has("patched.txt")]).toEqual([false, false]);
    // The same with the gate: both are there.
    const shipped = await rig.gate();
    const there = await runTurn(script, { gateUrl: shipped.url });
    expect([there.has("out.txt"), there.has("patched.txt")]).toEqual([true, true]);
  });

  it("pauses the turn until a person agreed", async () => {
    const approver = await rig.token({ roles: ["approver"], subject: "ada" });
    const one = await runTurn([[shell("touch asked.txt; ask now")]], {
      async meanwhile(threadId) {
        const ticket = await eventually(
          async () => {
            const { approvals } = (
              await gate.get(`/v1/approvals?state=pending&session=${threadId}`, approver)
            ).json as {
              approvals: { id: string; plan_digest: string }[];
            };
            return approvals[0];
          },
          Boolean,
          { deadlineMs: 30_000, what: "a ticket" },
        );
        await gate.post(
          `/v1/approvals/${ticket?.id ?? ""}/approve`,
          { plan_digest: ticket?.plan_digest, note: "" },
          approver,
        );
      },
    });
    expect(one.has("asked.txt")).toBe(true);
  });

  it("has one decision and one result of a command that its hooks see too", async () => {
    const shipped = await rig.gate();
    const one = await runTurn([[shell("ls -l")]], { gateUrl: shipped.url, hasHooks: true });
    const types = await eventually(
      () => typesOf(one.threadId),
      // The session's end is the hooks' own, and comes last.
      (told) => told.includes("agent.session.ended"),
      { deadlineMs: 20_000, what: "the end of the session" },
    );
    const count = (type: string): number => types.filter((told) => told === type).length;
    // Both were there: each tells of the turn.
    expect(count("agent.turn.started")).toBe(2);
    expect([count("agent.tool.requested"), count("agent.tool.completed")]).toEqual([1, 1]);
    // One about the call, and one about the client's own question, which gives no right.
    expect(count("agent.permission.requested")).toBe(1);
    expect(count("agent.tool.authorized")).toBe(2);
    expect(types.filter((type) => /diverged|ungated/.test(type))).toEqual([]);
  });

  it("lets no command of the client's own past the gate", async () => {
    const one = await runTurn([], {
      before: (threadId, workspace) => [
        { method: "thread/shellCommand", params: { threadId, command: "touch direct.txt" } },
        { method: "command/exec", params: { command: ["touch", "exec.txt"], cwd: workspace } },
        { method: "fs/writeFile", params: { path: join(workspace, "written.txt"), dataBase64: "eA==" } },
      ],
    });
    expect(["direct.txt", "exec.txt", "written.txt"].map((file) => one.has(file))).toEqual([
      false,
      false,
      false,
    ]);
    expect(one.received.filter((message) => message["error"] !== undefined)).toHaveLength(3);
  });

  it("without a sandbox runs an accepted command once, also one that a sandbox would have denied", async () => {
    const one = await runTurn([[shell("echo ran >> ran.txt; echo x > ../outside.txt")]]);
    expect(await readFile(join(one.workspace, "ran.txt"), "utf8")).toBe("ran\n");
    expect(one.has("../outside.txt")).toBe(true);
  });

  it("types nothing into a running terminal: there are none", async () => {
    const one = await runTurn([
      [{ name: "exec_command", input: { cmd: "cat > typed.txt", tty: true, yield_time_ms: 500 } }],
      [{ name: "write_stdin", input: { session_id: 1, chars: "typed\n" } }],
    ]);
    expect(one.has("typed.txt") && (await readFile(join(one.workspace, "typed.txt"), "utf8")) !== "").toBe(
      false,
    );
  });

  it("asks about the commands of a child agent, in a session of its own", async () => {
    const child = { name: "spawn_agent", namespace: "multi_agent_v1", input: { message: "touch child.txt" } };
    const one = await runTurn([[child], [shell("touch child.txt && git push --force")]]);
    expect(one.has("child.txt")).toBe(false);
    const events = await rig.events();
    const spawned = events.find(
      (event) => event.type === "agent.subagent.started" && event.execution.session_id === one.threadId,
    );
    const { subagent_id: childId } = spawned?.redacted_summary as { subagent_id: string };
    const ofChild = events.filter((event) => event.execution.session_id === childId);
    expect(ofChild.map(({ type }) => type)).toContain("agent.tool.denied");
  });

  it("asks about two calls at once, each for itself", async () => {
    const one = await runTurn([[shell("touch first.txt"), shell("touch second.txt && git push --force")]]);
    expect([one.has("first.txt"), one.has("second.txt")]).toEqual([true, false]);
  });
});
