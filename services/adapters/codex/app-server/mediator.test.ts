import { describe, expect, it } from "vitest";
import type { ProxyOrder } from "./app-server.ts";
import { toPinned, whyNot } from "./client-methods.ts";
import type { Mediator, MediatorOptions } from "./mediator.ts";
import { createMediator } from "./mediator.ts";
import type { WireObject } from "./wire-message.ts";

interface Rig {
  readonly mediator: Mediator;
  readonly toServer: WireObject[];
  readonly toClient: WireObject[];
  readonly asked: WireObject[];
  readonly observed: WireObject[];
}
const rig = (ask: MediatorOptions["ask"], options: Partial<MediatorOptions> = {}): Rig => {
  const [toServer, toClient, asked, observed]: WireObject[][] = [[], [], [], []];
  const mediator = createMediator({
    toServer: (line) => toServer?.push(JSON.parse(line) as WireObject),
    toClient: (line) => toClient?.push(JSON.parse(line) as WireObject),
    ask(payload) {
      asked?.push(payload);
      return ask(payload);
    },
    observe: (payload) => observed?.push(payload),
    pins: { sandbox: "keep" },
    waitMs: () => Promise.resolve(),
    nowMs: () => 0,
    pollMs: 1,
    ...options,
  });
  return { mediator, toServer, toClient, asked, observed } as Rig;
};
const order =
  (word: ProxyOrder["order"], rest: Partial<ProxyOrder> = {}) =>
  (): Promise<ProxyOrder> =>
    Promise.resolve({ order: word, reason: "STATIC_DENY: no", ...rest });
const question = (
  id: number,
  method = "item/commandExecution/requestApproval",
  params: object = {},
): string =>
  JSON.stringify({
    method,
    id,
    params: { kind: "command", threadId: "t", turnId: "u", itemId: "i", command: "ls", cwd: "/w", ...params },
  });

describe("a question of the server", () => {
  it("is answered by the gate and never shown to the client", async () => {
    const yes = rig(order("yes"));
    yes.mediator.fromServer(question(0));
    await yes.mediator.settled();
    expect(yes.toServer).toEqual([{ id: 0, result: { decision: "accept" } }]);
    expect(yes.toClient).toEqual([]);
    const no = rig(order("no"));
    no.mediator.fromServer(question(0));
    await no.mediator.settled();
    expect(no.toServer).toEqual([{ id: 0, result: { decision: "decline" } }]);
    expect(no.toClient).toMatchObject([
      { method: "warning", params: { message: "STATIC_DENY: no", threadId: "t" } },
    ]);
  });

  it.each([
    ["the gate fails", () => Promise.reject(new Error("x"))],
    ["the gate says something else", () => Promise.resolve({ decision: "accept" } as never)],
    ["the gate says nothing", () => Promise.resolve(undefined as never)],
    ["a ticket has no end", () => Promise.resolve({ order: "wait", reason: "r" } as ProxyOrder)],
  ])("is a no when %s", async (_, ask) => {
    const one = rig(ask);
    one.mediator.fromServer(question(3));
    await one.mediator.settled();
    expect(one.toServer).toEqual([{ id: 3, result: { decision: "decline" } }]);
  });

  it.each([
    ["item/permissions/requestApproval", { permissions: {}, scope: "turn" }],
    ["mcpServer/elicitation/request", { action: "decline", content: null, _meta: null }],
    ["applyPatchApproval", { decision: "denied" }],
    ["item/somethingNew/requestApproval", { decision: "decline" }],
  ])("%s has the no that the server honours", async (method, result) => {
    const one = rig(order("no"));
    one.mediator.fromServer(question(1, method, { _meta: { codex_approval_kind: "x" } }));
    await one.mediator.settled();
    expect(one.toServer).toEqual([{ id: 1, result }]);
  });

  it("cannot be answered by the client, before or after the gate", async () => {
    const one = rig(order("no"));
    one.mediator.fromServer(question(0));
    one.mediator.fromClient(JSON.stringify({ id: 0, result: { decision: "acceptForSession" } }));
    await one.mediator.settled();
    one.mediator.fromClient(JSON.stringify({ id: 0, result: { decision: "accept" } }));
    expect(one.toServer).toEqual([{ id: 0, result: { decision: "decline" } }]);
  });

  it("waits for a person, and is a no when the ticket ends or the question is gone", async () => {
    let asks = 0;
    const granted = rig(() =>
      Promise.resolve(
        (asks += 1) < 3
          ? { order: "wait", reason: "r", until: "2026-12-01T00:00:00Z" }
          : { order: "yes", reason: "" },
      ),
    );
    granted.mediator.fromServer(question(0));
    await granted.mediator.settled();
    expect(granted.toServer).toEqual([{ id: 0, result: { decision: "accept" } }]);
    let nowMs = 0;
    const expired = rig(order("wait", { until: "1970-01-01T00:00:01Z" }), { nowMs: () => (nowMs += 400) });
    expired.mediator.fromServer(question(0));
    await expired.mediator.settled();
    expect(expired.toServer).toEqual([{ id: 0, result: { decision: "decline" } }]);
    const gone = rig(order("wait", { until: "2026-12-01T00:00:00Z" }));
    gone.mediator.fromServer(question(0));
    gone.mediator.fromServer(
      JSON.stringify({ method: "serverRequest/resolved", params: { threadId: "t", requestId: 0 } }),
    );
    await gone.mediator.settled();
    expect(gone.toServer).toEqual([]);
  });

  it("waits on while the gate is away for a moment, and is a no once another ticket took the place of the one it waits for", async () => {
    const until = "2026-12-01T00:00:00Z";
    let asks = 0;
    const away = rig(() => {
      asks += 1;
      if (asks === 2) return Promise.reject(new Error("away"));
      return asks === 1 ? order("wait", { until })() : order("yes")();
    });
    away.mediator.fromServer(question(0));
    await away.mediator.settled();
    expect(away.toServer).toEqual([{ id: 0, result: { decision: "accept" } }]);
    // This machine's clock says that the first one goes on.
    let others = 0;
    const behind = rig(() =>
      (others += 1) < 3 ? order("wait", { until })() : order("wait", { until: "2026-12-01T00:15:00Z" })(),
    );
    behind.mediator.fromServer(question(0));
    await behind.mediator.settled();
    expect([others, behind.toServer]).toEqual([3, [{ id: 0, result: { decision: "decline" } }]]);
  });

  it("that moves only the client goes to the client, whose answer goes back", async () => {
    const one = rig(order("no"));
    one.mediator.fromServer(question(5, "item/tool/requestUserInput"));
    one.mediator.fromServer(question(6, "mcpServer/elicitation/request", { _meta: null }));
    one.mediator.fromClient(JSON.stringify({ id: 5, result: { answers: {} } }));
    await one.mediator.settled();
    expect(one.asked).toEqual([]);
    expect(one.toClient.map((message) => message["id"])).toEqual([5, 6]);
    expect(one.toServer).toEqual([{ id: 5, result: { answers: {} } }]);
  });

  it("to run a tool of the client's reaches the client only after a yes", async () => {
    const tool = question(7, "item/tool/call", { callId: "c", tool: "t", arguments: {} });
    const no = rig(order("no"));
    no.mediator.fromServer(tool);
    await no.mediator.settled();
    expect(no.toServer).toMatchObject([{ id: 7, result: { success: false } }]);
    const yes = rig(order("yes"));
    yes.mediator.fromServer(tool);
    await yes.mediator.settled();
    yes.mediator.fromClient(JSON.stringify({ id: 7, result: { success: true } }));
    expect(yes.toClient.map((message) => message["id"])).toEqual([7]);
    expect(yes.toServer).toEqual([{ id: 7, result: { success: true } }]);
  });
});

describe("a request of the client", () => {
  it.each([
    "thread/shellCommand",
    "command/exec",
    "process/spawn",
    "fs/writeFile",
    "config/batchWrite",
    "thread/approveGuardianDeniedAction",
    "some/newMethod",
  ])("%s, which would pass the gate by, is refused and not sent", (method) => {
    const one = rig(order("yes"));
    one.mediator.fromClient(JSON.stringify({ method, id: 9, params: {} }));
    expect(one.toServer).toEqual([]);
    expect(one.toClient).toMatchObject([
      { id: 9, error: { message: expect.stringContaining("POLICY_REFUSED") as string } },
    ]);
    expect(whyNot(method)).not.toBeNull();
  });

  it("that starts a thread or a turn is held: every command asks, and nobody else reviews", () => {
    const loose = {
      approvalPolicy: "never",
      approvalsReviewer: "auto_review",
      sandbox: "danger-full-access",
      permissions: "all",
      config: {
        approval_policy: "never",
        "sandbox_workspace_write.network_access": true,
        model: "m",
        "features.unified_exec_tty": true,
      },
    };
    expect(toPinned("thread/start", loose, { sandbox: "keep" })).toEqual({
      approvalPolicy: "untrusted",
      approvalsReviewer: "user",
      sandbox: "workspace-write",
      config: { model: "m", "features.unified_exec_tty": false },
    });
    expect(toPinned("thread/start", {}, { sandbox: "none" })).toMatchObject({
      approvalPolicy: "untrusted",
      sandbox: "danger-full-access",
    });
    expect(
      toPinned(
        "turn/start",
        { sandboxPolicy: { type: "dangerFullAccess" }, threadId: "t" },
        { sandbox: "keep" },
      ),
    ).toEqual({
      threadId: "t",
      approvalPolicy: "untrusted",
      approvalsReviewer: "user",
    });
    expect(toPinned("model/list", { a: 1 }, { sandbox: "keep" })).toEqual({ a: 1 });
  });

  it("that is no message is dropped, and one without parameters keeps its form", () => {
    const one = rig(order("yes"));
    one.mediator.fromClient('{"method":"thread/st');
    one.mediator.fromClient('{"method":"initialized"}');
    expect(one.toServer).toEqual([{ method: "initialized" }]);
  });
});
