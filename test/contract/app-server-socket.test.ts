import { once } from "node:events";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { readLoopbackUrl } from "../../services/adapters/codex/app-server/loopback.ts";
import type { RunningWebSocketProxy } from "../../services/adapters/codex/app-server/ws-proxy.ts";
import { startWebSocketProxy } from "../../services/adapters/codex/app-server/ws-proxy.ts";
import { connectServer } from "../../services/adapters/codex/app-server/ws-server-wire.ts";
import { readRecording } from "../harness/app-server-recordings.ts";
import { eventually } from "../harness/eventually.ts";

/** The proxy on WebSockets, between a client and a server that says what a real one was recorded to say. */

type Message = Readonly<Record<string, unknown>>;
const clientToken = "made-up-client-token";
const frameMaxBytes = 64 * 1024;
const recorded = "a_cmd_accept";

let gate: Server;
let order: Message | null;
let asked: Message[];
let server: WebSocketServer;
let toServer: Message[];
let connections: WebSocket[];
let proxy: RunningWebSocketProxy;
let shown: (string | undefined)[];
const open: WebSocket[] = [];

beforeEach(async () => {
  order = { order: "yes", reason: "ALLOWED: a rule allows this" };
  [asked, toServer, connections, shown] = [[], [], [], []];
  gate = createServer((request, response) => {
    let body = "";
    request
      .on("data", (chunk: Buffer) => (body += chunk.toString()))
      .on("end", () => {
        const payload = JSON.parse(body) as Message;
        const isQuestion = String(payload["method"]).endsWith("requestApproval");
        if (isQuestion) asked.push(payload);
        if (isQuestion && order === null) response.destroy();
        else {
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify(isQuestion ? order : {}));
        }
      });
  }).listen(0, "127.0.0.1");
  server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await Promise.all([once(gate, "listening"), once(server, "listening")]);
  server.on("connection", (socket, request) => {
    connections.push(socket);
    shown.push(request.headers.authorization);
    socket.on("message", (data: Buffer) => toServer.push(JSON.parse(data.toString()) as Message));
  });
  const { port } = server.address() as AddressInfo;
  proxy = await startWebSocketProxy({
    listen: readLoopbackUrl("ws://127.0.0.1:0", "--listen"),
    clientToken,
    openServer: () =>
      connectServer({
        url: new URL(`ws://127.0.0.1:${String(port)}`),
        token: () => "made-up-server-token",
        frameMaxBytes,
      }),
    frameMaxBytes,
    gateUrl: `http://127.0.0.1:${String((gate.address() as AddressInfo).port)}`,
    token: () => "made-up",
    pins: { sandbox: "none" },
    pollMs: 10,
    timeoutMs: 2_000,
  });
});
afterEach(async () => {
  for (const socket of open.splice(0)) socket.terminate();
  await proxy.close();
  server.close();
  for (const socket of connections) socket.terminate();
  gate.closeAllConnections();
  gate.close();
});

/** A client of the proxy; `headers` in place of its token. */
function connect(headers: Record<string, string> = { authorization: `Bearer ${clientToken}` }): WebSocket {
  const socket = new WebSocket(proxy.url, { headers });
  socket.on("error", () => undefined);
  open.push(socket);
  return socket;
}
async function connected(): Promise<{ readonly socket: WebSocket; readonly received: Message[] }> {
  const socket = connect();
  const received: Message[] = [];
  socket.on("message", (data: Buffer) => received.push(JSON.parse(data.toString()) as Message));
  await once(socket, "open");
  await eventually(() => connections.at(-1)?.readyState === WebSocket.OPEN, Boolean);
  return { socket, received };
}
/** What the recorded server said, up to its question and with it. */
const saidByServer = readRecording(recorded)
  .filter(({ from }) => from === "server")
  .map(({ line }) => line);
const at = saidByServer.findIndex((line) => line.includes("requestApproval"));
const sayUpToQuestion = (): void => {
  for (const line of saidByServer.slice(0, at + 1)) connections.at(-1)?.send(line);
};
const questionId = (JSON.parse(saidByServer[at] ?? "{}") as Message)["id"];
const answers = (): Message[] => toServer.filter((one) => one["id"] === questionId && "result" in one);
/** The status of a connection that is refused. */
const statusOf = (socket: WebSocket): Promise<number> =>
  new Promise((resolve) => {
    socket.on("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
    socket.on("open", () => resolve(101));
  });

describe("the proxy on WebSockets", () => {
  it("lets the gate answer what a recorded server asks, and pins what a client asks", async () => {
    const { socket, received } = await connected();
    socket.send(JSON.stringify({ method: "thread/start", id: 2, params: { approvalPolicy: "never" } }));
    sayUpToQuestion();
    await eventually(
      () => answers().length,
      (count) => count === 1,
    );
    expect(answers()).toEqual([{ id: questionId, result: { decision: "accept" } }]);
    expect(asked).toHaveLength(1);
    expect(received.some((one) => "id" in one && String(one["method"]).endsWith("requestApproval"))).toBe(
      false,
    );
    expect(toServer.find(({ id }) => id === 2)?.["params"]).toMatchObject({ approvalPolicy: "untrusted" });
    expect(shown).toEqual(["Bearer made-up-server-token"]);
  });

  it("says no when the gate is away, and when a client answers in its place", async () => {
    order = null;
    const { socket } = await connected();
    sayUpToQuestion();
    socket.send(JSON.stringify({ id: questionId, result: { decision: "accept" } }));
    await eventually(
      () => answers().length,
      (count) => count > 0,
    );
    expect(answers()).toEqual([{ id: questionId, result: { decision: "decline" } }]);
  });

  it("holds the turn while an approval is open", async () => {
    order = { order: "wait", reason: "APPROVAL_REQUIRED: apr_1", until: "2100-01-01T00:00:00.000Z" };
    await connected();
    sayUpToQuestion();
    await eventually(
      () => asked.length,
      (count) => count > 2,
    );
    expect(answers()).toEqual([]);
    order = { order: "yes", reason: "APPROVED: a person approved exactly this plan" };
    await eventually(
      () => answers().length,
      (count) => count === 1,
    );
    expect(answers()[0]?.["result"]).toEqual({ decision: "accept" });
  });

  it("stops waiting when its client goes, and asks in full when the next one gets the question again", async () => {
    order = { order: "wait", reason: "APPROVAL_REQUIRED: apr_1", until: "2100-01-01T00:00:00.000Z" };
    const { socket } = await connected();
    sayUpToQuestion();
    await eventually(
      () => asked.length,
      (count) => count > 0,
    );
    socket.close();
    await eventually(
      () => connections[0]?.readyState,
      (state) => state === WebSocket.CLOSED,
    );
    order = { order: "yes", reason: "APPROVED: a person approved exactly this plan" };
    await eventually(
      () => statusOfNext(),
      (status) => status === 101,
    );
    await eventually(
      () => connections.length,
      (count) => count === 2,
    );
    // The item that the question is about was told to the first client alone.
    connections.at(-1)?.send(saidByServer[at] ?? "");
    await eventually(
      () => answers().length,
      (count) => count === 1,
    );
    expect(asked.at(-1)).toEqual(asked[0]);
  });
  async function statusOfNext(): Promise<number> {
    return statusOf(connect());
  }

  it.each([
    ["no token", {}, 401],
    ["another token", { authorization: "Bearer made-up-client-tokem" }, 401],
    ["a page of a browser", { authorization: `Bearer ${clientToken}`, origin: "http://127.0.0.1:80" }, 403],
    ["another name", { authorization: `Bearer ${clientToken}`, host: "evil.example:80" }, 403],
  ])("takes no client with %s", async (_, headers, status) => {
    expect(await statusOf(connect(headers as Record<string, string>))).toBe(status);
    expect(connections).toEqual([]);
  });

  it("takes one client at a time", async () => {
    await connected();
    expect(await statusOf(connect())).toBe(409);
  });

  it.each([
    ["a frame past the limit", (socket: WebSocket) => socket.send("x".repeat(frameMaxBytes + 1)), 1009],
    [
      "a frame that is no text",
      (socket: WebSocket) => socket.send(Buffer.from("{}"), { binary: true }),
      1003,
    ],
  ])("ends the connection after %s, and with it the server's", async (_, send, code) => {
    const { socket } = await connected();
    send(socket);
    expect((await once(socket, "close"))[0]).toBe(code);
    await eventually(
      () => connections[0]?.readyState,
      (state) => state === WebSocket.CLOSED,
    );
    expect(toServer).toEqual([]);
  });

  it("tells its client when the server has ended", async () => {
    const { socket } = await connected();
    connections[0]?.terminate();
    expect((await once(socket, "close"))[0]).toBe(1011);
  });

  it("listens and connects on this machine alone", () => {
    for (const text of [
      "ws://0.0.0.0:1",
      "ws://example.com:1",
      "wss://127.0.0.1:1",
      "ws://a:b@127.0.0.1:1",
      "x",
    ])
      expect(() => readLoopbackUrl(text, "--listen")).toThrow(/this machine alone/);
  });
});
