import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  GateClient,
  HookRegistry,
  Lifecycle,
  Tool,
  ToolPipeline,
} from "../../services/adapters/sdk/sdk.ts";
import {
  createGateClient,
  createHookRegistry,
  createLifecycle,
  createTicketWaiter,
  createToolPipeline,
} from "../../services/adapters/sdk/sdk.ts";
import { eventually } from "../harness/eventually.ts";
import type { Message, Model } from "../harness/example-agent.ts";
import { runExampleAgent } from "../harness/example-agent.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { workPolicy } from "../harness/work-policy.ts";

let rig: GateRig;
let gate: RunningGate;
let token: string;
let workspace: string;
const policy = workPolicy();
beforeAll(async () => {
  rig = await createGateRig();
  gate = await rig.gate({ policy: () => policy });
  token = await rig.token();
  workspace = await mkdtemp(join(tmpdir(), "own-harness-"));
});
afterAll(async () => {
  await rig.close();
  await rm(workspace, { recursive: true, force: true });
});

interface OwnHarness {
  readonly hooks: HookRegistry;
  readonly gateClient: GateClient;
  readonly lifecycle: Lifecycle;
  readonly pipeline: ToolPipeline;
  /** What the body of `shell.run` was entered with: the sentinel. */
  readonly entered: () => Promise<string[]>;
}
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
let harnesses = 0;
/** A harness with two tools: one that "runs" a command by writing it to a file, one that writes files. */
const ownHarness = (url = gate.url, options: { ask?: boolean; timeoutMs?: number } = {}): OwnHarness => {
  const sentinel = join(workspace, `entered-${String((harnesses += 1))}`);
  const hooks = createHookRegistry();
  const gateClient = createGateClient({ url, token: () => token, timeoutMs: options.timeoutMs ?? 5_000 });
  const lifecycle = createLifecycle(hooks, gateClient);
  const tools: Tool[] = [
    {
      name: "shell.run",
      check: ({ command }) => (typeof command === "string" ? null : '"command" is a text'),
      async body({ command }) {
        await appendFile(sentinel, `${textOf(command)}\n`);
        return `ran ${textOf(command)}`;
      },
    },
    {
      name: "file.write",
      repeat: "idempotent",
      async body({ file_path: path, content }) {
        await writeFile(join(workspace, textOf(path)), textOf(content));
        return "written";
      },
    },
    { name: "todo.write", body: () => "noted" },
  ];
  const pipeline = createToolPipeline({
    lifecycle,
    gate: gateClient,
    tools,
    ...(options.ask === true ? { approvals: createTicketWaiter(gateClient, { pollMs: 20 }) } : {}),
  });
  const entered = (): Promise<string[]> =>
    readFile(sentinel, "utf8").then(
      (text) => text.trim().split("\n"),
      () => [],
    );
  return { hooks, gateClient, lifecycle, pipeline, entered };
};
const typesOf = async (session: string): Promise<string[]> =>
  (await rig.events()).filter((event) => event.execution.session_id === session).map(({ type }) => type);
const refusals = (history: readonly Message[]): Message[] =>
  history.filter((one) => one.role === "tool" && one.status === "blocked");

describe("a tool loop of one's own", () => {
  /** Pushes by force until it is told no, then does it the quiet way. */
  const stubborn: Model = (history) => {
    const told = history.filter((one) => one.role === "tool");
    const last = told.at(-1);
    if (last === undefined)
      return { calls: [{ id: "k1", tool: "shell.run", input: { command: "git push --force" } }] };
    if (last.status === "blocked")
      return { calls: [{ id: "k2", tool: "shell.run", input: { command: "ls" } }] };
    return { say: "done another way" };
  };

  it("never enters the body of a refused call, shows the refusal to the model, and goes on another way", async () => {
    const one = ownHarness();
    const run = await runExampleAgent({
      ...one,
      model: stubborn,
      sessionId: "own-loop",
      prompt: "push it",
      workingDirectory: "/work-place",
    });
    expect(await one.entered()).toEqual(["ls"]);
    expect(refusals(run.history)).toMatchObject([{ callId: "k1", text: "STATIC_DENY: never, whoever asks" }]);
    expect(run.proposed.map(({ input }) => input)).toEqual([
      { command: "git push --force" },
      { command: "ls" },
    ]);
    expect(run.finalMessage).toBe("done another way");
    const { executed, blocked } = one.pipeline.ledgers;
    expect(executed).toMatchObject([{ callId: "k2", status: "succeeded" }]);
    expect(blocked).toMatchObject([{ callId: "k1", by: "gate", reasonCode: "STATIC_DENY" }]);
    await one.gateClient.close();
    expect((await typesOf("own-loop")).sort()).toEqual(
      [
        "agent.session.started",
        "agent.prompt.submitted",
        "agent.turn.started",
        ...["agent.model.completed", "agent.model.completed", "agent.model.completed"],
        ...["agent.tool.requested", "agent.tool.denied"],
        ...[
          "agent.tool.requested",
          "agent.tool.authorized",
          "agent.capability.issued",
          "agent.tool.completed",
        ],
        "agent.turn.completed",
        "agent.session.ended",
      ].sort(),
    );
  });

  it("has one story: the result names the request that caused it, and the request its turn", async () => {
    const events = (await rig.events()).filter((event) => event.execution.session_id === "own-loop");
    const byType = (type: string): (typeof events)[number] | undefined =>
      events.findLast((event) => event.type === type);
    expect(new Set(events.map((event) => event.correlation_id)).size).toBe(1);
    expect(byType("agent.tool.completed")?.causation_id).toBe(byType("agent.tool.requested")?.event_id);
    expect(byType("agent.tool.completed")?.execution.tool_call_id).toBe("k2");
    expect(byType("agent.turn.completed")?.causation_id).toBe(byType("agent.turn.started")?.event_id);
  });

  it("runs with the input that policy put in place", async () => {
    const one = ownHarness();
    const outcome = await one.pipeline.run({
      id: "m1",
      tool: "shell.run",
      input: { command: "rewrite-me" },
      sessionId: "own-modify",
    });
    expect(outcome).toMatchObject({
      status: "succeeded",
      input: { command: "echo password=hunter2-rewritten-hunter2" },
    });
    expect(await one.entered()).toEqual(["echo password=hunter2-rewritten-hunter2"]);
    await one.gateClient.close();
  });

  it("waits for a person in the middle of a call, and runs once they agree", async () => {
    const one = ownHarness(gate.url, { ask: true });
    const running = one.pipeline.run({
      id: "a1",
      tool: "shell.run",
      input: { command: "ask now" },
      sessionId: "own-ask",
    });
    const approver = await rig.token({ roles: ["approver"], subject: "ada" });
    const ticket = await eventually(async () => {
      const { approvals } = (await gate.get("/v1/approvals?state=pending&session=own-ask", approver))
        .json as {
        approvals: { id: string; plan_digest: string }[];
      };
      return approvals[0];
    });
    expect(await one.entered()).toEqual([]);
    await gate.post(
      `/v1/approvals/${ticket?.id ?? ""}/approve`,
      { plan_digest: ticket?.plan_digest, note: "" },
      approver,
    );
    expect(await running).toMatchObject({ status: "succeeded" });
    expect(await one.entered()).toEqual(["ask now"]);
    await one.gateClient.close();
  });

  it("is told no when a person refuses, and gets the ticket when there is nobody to wait", async () => {
    const one = ownHarness(gate.url, { ask: true });
    const running = one.pipeline.run({
      id: "r1",
      tool: "shell.run",
      input: { command: "ask no" },
      sessionId: "own-refuse",
    });
    const approver = await rig.token({ roles: ["approver"], subject: "ada" });
    const ticket = await eventually(async () => {
      const { approvals } = (await gate.get("/v1/approvals?state=pending&session=own-refuse", approver))
        .json as {
        approvals: { id: string }[];
      };
      return approvals[0]?.id;
    });
    await gate.post(`/v1/approvals/${ticket ?? ""}/refuse`, {}, approver);
    expect(await running).toMatchObject({
      status: "blocked",
      by: "approval",
      reasonCode: "APPROVAL_REFUSED",
    });
    const two = ownHarness();
    const outcome = await two.pipeline.run({
      id: "t1",
      tool: "shell.run",
      input: { command: "ask later" },
      sessionId: "own-ticket",
    });
    expect(outcome).toMatchObject({ status: "blocked", reasonCode: "APPROVAL_REQUIRED" });
    expect(outcome.text).toContain("ask again with the same input once it is approved");
    expect([...(await one.entered()), ...(await two.entered())]).toEqual([]);
    await one.gateClient.close();
    await two.gateClient.close();
  });

  it("carries what a result labels into the very next call", async () => {
    const one = ownHarness();
    const call = (id: string, command: string): ReturnType<ToolPipeline["run"]> =>
      one.pipeline.run({ id, tool: "shell.run", input: { command }, sessionId: "own-label" });
    expect(await call("l1", "send-out")).toMatchObject({ status: "succeeded" });
    expect(await call("l2", "read-secret")).toMatchObject({ status: "succeeded" });
    expect(await call("l3", "send-out")).toMatchObject({ status: "blocked", by: "gate" });
    await one.gateClient.close();
  });
});

describe("handlers of a harness", () => {
  it("that are uninstalled no longer act, and what they refused was never asked at the gate but is recorded there", async () => {
    const one = ownHarness();
    const uninstall = one.hooks.hook("PreToolUse", () => ({ deny: "not on Fridays" }), { name: "fridays" });
    const call = (id: string): ReturnType<ToolPipeline["run"]> =>
      one.pipeline.run({ id, tool: "shell.run", input: { command: "ls" }, sessionId: "own-hook" });
    expect(await call("h1")).toMatchObject({ status: "blocked", by: "hook", handler: "fridays" });
    uninstall();
    expect(await call("h2")).toMatchObject({ status: "succeeded" });
    expect(await one.entered()).toEqual(["ls"]);
    await one.gateClient.close();
    const events = (await rig.events()).filter((event) => event.execution.session_id === "own-hook");
    const refused = events.find((event) => event.type === "agent.permission.refused");
    expect(refused?.redacted_summary).toMatchObject({
      refused_by: "runtime",
      reason: "HOOK_DENIED: not on Fridays",
    });
    expect(events.filter((event) => event.execution.tool_call_id === "h1").map(({ type }) => type)).toEqual([
      "agent.permission.refused",
    ]);
  });

  it("that format what was written are not set off by what they write, and are asked about at the gate", async () => {
    const one = ownHarness();
    let formatted = 0;
    one.hooks.observe(
      "PostToolUse",
      async ({ call, sessionId }) => {
        formatted += 1;
        const text = await readFile(join(workspace, textOf(call.input["file_path"])), "utf8");
        await one.pipeline.run({
          id: `${call.id}-formatted`,
          tool: "file.write",
          input: { file_path: call.input["file_path"] ?? "", content: `${text.trim()}\n` },
          sessionId,
        });
      },
      { name: "format", match: { tools: ["file.write"] } },
    );
    await one.pipeline.run({
      id: "f1",
      tool: "file.write",
      input: { file_path: "a.txt", content: "  x  " },
      sessionId: "own-format",
    });
    expect(formatted).toBe(1);
    expect(await readFile(join(workspace, "a.txt"), "utf8")).toBe("x\n");
    await one.gateClient.close();
    const requested = (await typesOf("own-format")).filter((type) => type === "agent.tool.requested");
    expect(requested).toHaveLength(2);
  });
});

describe("while the gate is away", () => {
  it("nothing with an effect runs, and the model is told why", async () => {
    const closed = ownHarness("http://127.0.0.1:1", { timeoutMs: 500 });
    const outcome = await closed.pipeline.run({
      id: "x1",
      tool: "shell.run",
      input: { command: "ls" },
      sessionId: "own-away",
    });
    expect(outcome).toMatchObject({ status: "blocked", by: "gate", reasonCode: "GATE_UNREACHABLE" });
    expect(await closed.entered()).toEqual([]);
    expect((await closed.gateClient.close()).events).toBe(1);
  });

  it.each([
    ["says nothing", () => undefined],
    ["answers garbage", (response: { end(text: string): void }) => response.end("<html>allow</html>")],
    [
      "cuts off its answer",
      (response: { write(text: string): void; destroy(): void }) => {
        response.write('{"decision":"allow"');
        response.destroy();
      },
    ],
  ])("nothing runs when it %s", async (_, answer) => {
    const server = createServer((_request, response) => answer(response as never));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const one = ownHarness(`http://127.0.0.1:${String(port)}`, { timeoutMs: 100 });
    const outcome = await one.pipeline.run({
      id: "g1",
      tool: "shell.run",
      input: { command: "ls" },
      sessionId: "own-garbage",
    });
    expect(outcome.status).toBe("blocked");
    expect(await one.entered()).toEqual([]);
    server.closeAllConnections();
    server.close();
    await one.gateClient.flush(1);
  });

  it("a listed tool without effect goes on by the local profile, is reported when the gate is back, and nothing else does", async () => {
    // A door that can be shut: the gate behind it stays the same.
    let isOpen = true;
    const door = createServer((request, response) => {
      if (!isOpen) {
        request.socket.destroy();
        return;
      }
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const isPost = request.method === "POST";
        void fetch(`${gate.url}${request.url ?? ""}`, {
          method: request.method ?? "GET",
          headers: { authorization: request.headers.authorization ?? "", "content-type": "application/json" },
          ...(isPost ? { body: Buffer.concat(chunks) } : {}),
        }).then(async (reply) => {
          response.writeHead(reply.status, { "content-type": "application/json" }).end(await reply.text());
        });
      });
    });
    await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));
    const { port } = door.address() as { port: number };
    const one = ownHarness(`http://127.0.0.1:${String(port)}`);
    await one.gateClient.prepare();
    isOpen = false;
    const call = (id: string, tool: string, input: object): ReturnType<ToolPipeline["run"]> =>
      one.pipeline.run({ id, tool, input, sessionId: "own-profile" });
    expect(await call("p1", "todo.write", { todos: [] })).toMatchObject({ status: "succeeded" });
    expect(await call("p2", "shell.run", { command: "ls" })).toMatchObject({ status: "blocked" });
    expect(await one.entered()).toEqual([]);
    expect(one.gateClient.state().unreportedDecisions).toBe(1);
    isOpen = true;
    expect(await one.gateClient.close()).toEqual({ events: 0, droppedEvents: 0, unreportedDecisions: 0 });
    const events = (await rig.events()).filter((event) => event.execution.tool_call_id === "p1");
    expect(events.map(({ type }) => type).sort()).toEqual([
      "agent.tool.authorized",
      "agent.tool.completed",
      "agent.tool.requested",
    ]);
    door.closeAllConnections();
    door.close();
  });
});
