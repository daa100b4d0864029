import { mkdtempSync, rmSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGateLink } from "../../services/adapters/codex/app-server/gate-link.ts";
import { createGateClient } from "../../services/adapters/sdk/gate/gate-client.ts";
import { eventually } from "../harness/eventually.ts";
import type { GatedForm } from "../harness/gated-forms.ts";
import { countKept, gatedForms, hasPython, runToEnd, tellResult } from "../harness/gated-forms.ts";

type Speak = (response: ServerResponse, yes: GatedForm["yes"]) => void;

let folder: string;
let server: Server;
let gateUrl: string;
let speak: (response: ServerResponse, request: IncomingMessage) => void;
/** Bytes that were written to whoever asked. */
let sentBytes: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "garbage-"));
  sentBytes = 0;
  server = createServer((request, response) => {
    request.resume().on("end", () => speak(response, request));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  gateUrl = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(folder, { recursive: true, force: true });
});

const say =
  (status: number, type: string | null, body: string): Speak =>
  (response) => {
    response.writeHead(status, type === null ? {} : { "content-type": type }).end(body);
  };
const megabyte = " ".repeat(2 ** 20);
/** A yes that does not end. */
const endless: Speak = (response, { type, body }) => {
  response.writeHead(200, { "content-type": type });
  response.write(body);
  const more = (): void => {
    while (!response.destroyed && response.write(megabyte)) sentBytes += megabyte.length;
  };
  response.on("drain", more);
  more();
};
/** More than an answer may hold, and more than a socket does. */
const keptMaxBytes = 128 * 2 ** 20;

const garbage: readonly (readonly [string, Speak])[] = [
  ["a page", say(200, "text/html", "<html>not the gate</html>")],
  [
    "half an answer",
    (response, { type, body }) => say(200, type, body.slice(0, 6))(response, { type, body }),
  ],
  [
    "an answer that is cut off",
    (response, { type, body }) => {
      response.writeHead(200, { "content-type": type, "content-length": body.length + 10 });
      response.write(body, () => response.destroy());
    },
  ],
  [
    "an answer of another form",
    (response, { type }) => response.writeHead(200, { "content-type": type }).end('{"allowed":true}'),
  ],
  ["a list", (response, { type }) => response.writeHead(200, { "content-type": type }).end('["allow"]')],
  ["nothing", (response, { type }) => response.writeHead(200, { "content-type": type }).end()],
  ["nothing, with 204", (response) => response.writeHead(204).end()],
  ["an answer without an end", endless],
  [
    "a yes with a status of 500",
    (response, { type, body }) => say(500, type, body)(response, { type, body }),
  ],
  [
    "a yes with a status of 404",
    (response, { type, body }) => say(404, type, body)(response, { type, body }),
  ],
  ["a yes from elsewhere", (response) => response.writeHead(302, { location: "/elsewhere" }).end()],
  ["no HTTP", (response) => response.socket?.end("fabric 0\n{}")],
];

const place = (): Parameters<GatedForm["ask"]>[0] => ({
  folder,
  gateUrl,
  token: "made-up",
  deadlineMs: 5_000,
});
const call = { id: "call-1", command: "ls" };

describe.each(gatedForms)("$name", (form) => {
  it("lets a call run after a yes", async () => {
    speak = (response) => say(200, form.yes.type, form.yes.body)(response, form.yes);
    expect(await form.ask(place(), call)).toMatchObject({ ran: true });
  });

  it.each(garbage)("runs nothing when the gate answers with %s", async (_, speech) => {
    speak = (response) => speech(response, form.yes);
    const { ran, told } = await form.ask(place(), call);
    expect([ran, told]).toEqual([false, expect.stringMatching(/^GATE_[A-Z]+:/)]);
    expect(sentBytes).toBeLessThan(keptMaxBytes);
  });
});

describe.each(gatedForms.filter(({ hasOwnMark }) => hasOwnMark !== true))("$name", (form) => {
  it("runs nothing after a yes that says it is something else", async () => {
    const others = [
      [200, "text/html"],
      [200, null],
      [202, form.yes.type],
    ] as const;
    for (const [status, type] of others) {
      speak = (response) => say(status, type, form.yes.body)(response, form.yes);
      expect([status, type, (await form.ask(place(), call)).ran]).toEqual([status, type, false]);
    }
  });
});

describe("a report that something else than the gate took", () => {
  const strangers: readonly (readonly [string, Speak])[] = [
    ["a page", say(200, "text/html", "<html>not the gate</html>")],
    ["a page that is not found", say(404, "text/html", "<html>not here</html>")],
    [
      "a refusal of the token",
      say(200, "application/json", '{"decision":"deny","reason":"TOKEN_INVALID: x"}'),
    ],
  ];

  it.each(strangers)("waits, when the answer is %s", async (_, speech) => {
    speak = (response) => speech(response, { type: "", body: "" });
    for (const name of hasPython ? (["opencode", "hermes"] as const) : (["opencode"] as const)) {
      const own = mkdtempSync(join(folder, "told-"));
      await tellResult(name, { folder: own, gateUrl, token: "made-up", deadlineMs: 5_000 });
      await eventually(() => expect([name, countKept({ folder: own })]).toEqual([name, 1]));
    }
  });

  it.each(["hook.sh", "hook.mjs"])("waits in the spool of %s", async (name) => {
    speak = (response) => say(500, "text/x-fabric-hook", "fabric 0\n{}")(response, { type: "", body: "" });
    const form = gatedForms.find((one) => one.name === name);
    const [program = "", file = ""] =
      form?.argv?.({ folder, gateUrl, token: "made-up", deadlineMs: 5_000 }) ?? [];
    expect((await runToEnd([program, file, "observe", "hash"], "{}")).code).toBe(0);
    expect(countKept({ folder })).toBe(1);
  });

  it.each(strangers)("is told again by the SDK, when the answer is %s", async (_, speech) => {
    speak = (response) => speech(response, { type: "", body: "" });
    const client = createGateClient({ url: gateUrl, token: "made-up", localProfile: "never" });
    client.observe({ event: "TurnStart" });
    expect((await client.flush(500)).events).toBe(1);
    await client.close();
  });

  it("is told again by the proxy of Codex's App Server", async () => {
    const kinds = strangers.slice(0, 2);
    let asked = 0;
    speak = (response) => {
      asked += 1;
      const order = '{"order":"no","reason":"TOKEN_INVALID: x"}';
      if (asked === 1) say(200, "application/json", order)(response, { type: "", body: "" });
      else if (asked <= 1 + kinds.length) kinds[asked - 2]?.[1](response, { type: "", body: "" });
      else say(200, "application/json", "{}")(response, { type: "", body: "" });
    };
    const link = createGateLink({ gateUrl, token: () => "made-up" });
    link.observe({ method: "turn/started" });
    await eventually(() => expect(asked).toBeGreaterThan(1 + kinds.length));
    await link.lastWords();
  });
});
