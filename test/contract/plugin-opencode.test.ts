import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { room } from "../../services/adapters/opencode/room.ts";
import { eventually } from "../harness/eventually.ts";

type Hook = (input: Record<string, unknown>, output?: Record<string, unknown>) => Promise<void>;
type Hooks = Readonly<Record<string, Hook>>;

let folder: string;
let server: Server;
let heard: { readonly hook: string; readonly header: string | undefined; readonly body: string }[];
let answer: (response: ServerResponse, hook: string) => void;
const say =
  (body: unknown, status = 200) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "plugin-"));
  heard = [];
  answer = say({ decision: "allow" });
  server = createServer((request, response) => {
    let body = "";
    request
      .on("data", (chunk: Buffer) => (body += chunk.toString()))
      .on("end", () => {
        const { hook } = JSON.parse(body) as { hook: string };
        heard.push({ hook, header: request.headers["x-fabric-hooks"] as string | undefined, body });
        answer(response, hook);
      });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(folder, { recursive: true, force: true });
});

/** The plugin as it is installed, loaded as its client would. */
async function load(
  more: { readonly gateUrl?: string; readonly settings?: string; readonly waitMs?: number } = {},
): Promise<Hooks> {
  const { port } = server.address() as AddressInfo;
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "made-up");
  const edits = room.setup.edits({
    home: folder,
    form: "plugin",
    gateUrl: more.gateUrl ?? `http://127.0.0.1:${String(port)}`,
    tokenFile,
    token: "made-up",
    fabricDir: join(folder, "fabric"),
    configurationHash: "sha256:1",
    gatingCommand: "",
    observingCommand: "",
    gatingDeadlineMs: 500,
    observingDeadlineMs: 500,
    approvalWaitMs: more.waitMs ?? 0,
    clientVersion: "1.18.33",
    packagesDir: "",
  });
  for (const { path, toInstalled } of edits) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, toInstalled(null));
  }
  const plugin = join(folder, "fabric/plugin");
  const settings = join(plugin, "fabric.json");
  if (more.settings !== undefined) writeFileSync(settings, more.settings);
  else {
    const read = JSON.parse(readFileSync(settings, "utf8")) as object;
    writeFileSync(settings, JSON.stringify({ ...read, approval_poll_ms: 10 }));
  }
  const made = (await import(pathToFileURL(join(plugin, "index.mjs")).href)) as {
    PolicyHookFabric: (context: object) => Promise<Hooks>;
  };
  return made.PolicyHookFabric({ directory: "/w", worktree: "/w", project: {}, serverUrl: "http://x/" });
}
const call = { tool: "bash", sessionID: "ses_1", callID: "call_1" };
/** What becomes of a call: the arguments that would run, or the words of the exception. */
async function askFor(hooks: Hooks): Promise<unknown> {
  const args: Record<string, unknown> = { command: "ls", description: "x" };
  try {
    await hooks["tool.execute.before"]?.(call, { args });
    return args;
  } catch (error) {
    return (error as Error).message;
  }
}

describe("the plugin inside OpenCode", () => {
  it("lets a call go on after a yes, with its hooks' hash on every request", async () => {
    expect(await askFor(await load())).toEqual({ command: "ls", description: "x" });
    expect(heard.map(({ hook }) => hook)).toContain("plugin.init");
    expect(new Set(heard.map(({ header }) => header))).toEqual(new Set(["sha256:1"]));
  });

  it("changes the arguments in place, and throws the reason of a no or of a ticket", async () => {
    const hooks = await load();
    answer = say({ decision: "modify", input: { command: "ls -l" } });
    expect(await askFor(hooks)).toEqual({ command: "ls -l" });
    answer = say({ decision: "deny", reason: "STATIC_DENY: no" });
    expect(await askFor(hooks)).toBe("STATIC_DENY: no");
    answer = say({ decision: "ask", reason: "APPROVAL_REQUIRED: apr_1", approval_id: "apr_1" });
    expect(await askFor(hooks)).toBe("APPROVAL_REQUIRED: apr_1");
  });

  const ticket = { decision: "ask", reason: "APPROVAL_REQUIRED: apr_1", approval_id: "apr_1" };

  it("holds a call whose approval is open by asking the same again, and lets it go on once somebody agreed", async () => {
    const hooks = await load({ waitMs: 60_000 });
    let asked = 0;
    answer = (response, hook) => {
      if (hook === "tool.execute.before") asked += 1;
      // A gate that is away for a moment decides nothing.
      if (asked === 2) say({}, 503)(response);
      else say(asked < 4 ? ticket : { decision: "allow" })(response);
    };
    expect(await askFor(hooks)).toHaveProperty("command");
    expect(asked).toBe(4);
  });

  it.each([
    ["a refusal", { decision: "deny", reason: "APPROVAL_REFUSED: no" }, "APPROVAL_REFUSED: no"],
    ["nonsense", { decision: "yes" }, "APPROVAL_REQUIRED: apr_1"],
  ])("ends its wait with a no after %s, or with the ticket", async (_, after, told) => {
    const hooks = await load({ waitMs: 200 });
    let asked = 0;
    answer = (response) => {
      asked += 1;
      say(asked < 3 ? ticket : after)(response);
    };
    expect(await askFor(hooks)).toBe(told);
  });

  const nonsense: readonly [string, ReturnType<typeof say>][] = [
    ["an empty object", say({})],
    ["no JSON", say("<html>")],
    ["half a document", say('{"decision":"al')],
    ["an unknown decision", say({ decision: "allowed" })],
    ["a no without a reason", say({ decision: "deny" })],
    ["a change without an input", say({ decision: "modify", input: ["x"] })],
    ["a ticket without a number", say({ decision: "ask", reason: "x" })],
    ["a yes with a status of failure", say({ decision: "allow" }, 503)],
    ["a yes from elsewhere", (response) => response.writeHead(302, { location: "/" }).end()],
    ["a connection that breaks", (response) => response.destroy()],
    ["nothing at all", () => undefined],
  ];
  it.each(nonsense)("refuses a call when the gate answers %s", async (_, spoken) => {
    const hooks = await load();
    answer = (response, hook) => (hook === "tool.execute.before" ? spoken(response) : say({})(response));
    expect(await askFor(hooks)).toContain("GATE_UNREACHABLE");
  });

  it("refuses every call when its settings or its token cannot be read, and loads all the same", async () => {
    expect(await askFor(await load({ settings: "{" }))).toContain("HOOK_MISCONFIGURED");
    const hooks = await load();
    rmSync(join(folder, "token"));
    expect(await askFor(hooks)).toContain("GATE_UNREACHABLE");
  });

  it("keeps reports while the gate is away, refuses until they are delivered, and delivers them in order", async () => {
    const hooks = await load();
    await askFor(hooks);
    answer = say({}, 503);
    await hooks["tool.execute.after"]?.({ ...call, args: {} }, { output: "first" });
    await hooks["tool.execute.after"]?.({ ...call, args: {} }, { output: "second" });
    const spool = join(folder, "fabric/spool/reports.jsonl");
    await eventually(
      () => readFileSync(spool, "utf8").trim().split("\n").length,
      (lines) => lines === 2,
    );
    expect(statSync(spool).mode & 0o777).toBe(0o600);
    expect(await askFor(hooks)).toContain("results of earlier calls could not be reported");
    answer = say({ decision: "allow" });
    heard = [];
    expect(await askFor(hooks)).toHaveProperty("command");
    expect(heard.map(({ hook }) => hook)).toEqual([
      "tool.execute.after",
      "tool.execute.after",
      "tool.execute.before",
    ]);
  });

  it("lets the client go on while a result is told, and asks for the next call only behind it", async () => {
    const hooks = await load();
    await askFor(hooks);
    heard = [];
    let told: () => void = () => undefined;
    answer = (response, hook) => {
      if (hook === "tool.execute.after") told = () => say({})(response);
      else say({ decision: "allow" })(response);
    };
    const output = { output: "as it came" };
    await hooks["tool.execute.after"]?.({ ...call, args: {} }, output);
    output.output = "changed by the client";
    const next = askFor(hooks);
    await eventually(() => heard.some(({ hook }) => hook === "tool.execute.after"));
    expect(heard).toHaveLength(1);
    expect(heard[0]?.body).toContain("as it came");
    told();
    expect(await next).toHaveProperty("command");
    expect(heard.map(({ hook }) => hook)).toEqual(["tool.execute.after", "tool.execute.before"]);
  });

  it("refuses a call when the result before it is not taken in time", async () => {
    const hooks = await load();
    answer = (response, hook) => {
      if (hook !== "tool.execute.after") say({ decision: "allow" })(response);
    };
    await hooks["tool.execute.after"]?.({ ...call, args: {} }, { output: "x" });
    expect(await askFor(hooks)).toContain("GATE_UNREACHABLE");
    expect(heard.map(({ hook }) => hook)).not.toContain("tool.execute.before");
  });

  it("reports without ever throwing, and tells a shell that no call started", async () => {
    const hooks = await load({ gateUrl: "http://127.0.0.1:9" });
    await hooks["chat.message"]?.({ sessionID: "ses_1" }, {});
    await hooks["event"]?.({ event: { type: "session.created", properties: null } });
    await hooks["event"]?.({});
    // As it is installed a person's own command is told, and refused: nothing sees what it is.
    await expect(hooks["shell.env"]?.({ cwd: "/w", sessionID: "ses_1", callID: "call_9" })).rejects.toThrow(
      "USER_SHELL_REFUSED",
    );
    await hooks["dispose"]?.({});
  });
});
