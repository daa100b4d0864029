import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { room } from "../../services/adapters/openclaw/room.ts";

type Hook = (event: object, ctx: object) => Promise<unknown>;

let folder: string;
let server: Server;
let heard: { readonly hook: string; readonly place: { readonly user_dialog?: boolean } }[];
let answer: unknown;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "plugin-"));
  heard = [];
  answer = { decision: "allow" };
  server = createServer((request, response) => {
    let body = "";
    request
      .on("data", (chunk: Buffer) => (body += chunk.toString()))
      .on("end", () => {
        const payload = JSON.parse(body) as (typeof heard)[number];
        heard.push(payload);
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(payload.hook === "before_tool_call" ? answer : {}));
      });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(folder, { recursive: true, force: true });
});

/** The plugin as it is installed, registered as its client would. */
async function load(): Promise<ReadonlyMap<string, Hook>> {
  const { port } = server.address() as AddressInfo;
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "made-up");
  const edits = room.setup.edits({
    home: folder,
    form: "plugin",
    gateUrl: `http://127.0.0.1:${String(port)}`,
    tokenFile,
    token: "made-up",
    fabricDir: join(folder, "fabric"),
    configurationHash: "sha256:1",
    gatingCommand: "",
    observingCommand: "",
    gatingDeadlineMs: 500,
    observingDeadlineMs: 500,
    approvalWaitMs: 0,
    clientVersion: "2026.9.6",
    packagesDir: "",
  });
  for (const { path, toInstalled } of edits) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, toInstalled(null));
  }
  const made = (await import(pathToFileURL(join(folder, "fabric/plugin/index.mjs")).href)) as {
    default: { register: (api: { on: (name: string, hook: Hook) => void }) => void };
  };
  const hooks = new Map<string, Hook>();
  made.default.register({ on: (name, hook) => hooks.set(name, hook) });
  return hooks;
}
const event = { toolName: "exec", params: { command: "ls" }, runId: "r1", toolCallId: "c1" };
const ctx = { sessionKey: "agent:main:main", sessionId: "s1" };
const confirm = { decision: "confirm", reason: "CONFIRMATION_REQUIRED: sends", what: "exec ls" };
interface Question {
  readonly requireApproval?: {
    readonly description: string;
    readonly allowedDecisions: readonly string[];
    readonly onResolution: (decision: string) => void;
  };
}

describe("the plugin inside OpenClaw", () => {
  it("says that it has a dialog in a gateway alone, and puts the client's own question there, for this call only", async () => {
    const hooks = await load();
    await hooks.get("before_tool_call")?.(event, ctx);
    await hooks.get("gateway_start")?.({}, {});
    answer = confirm;
    const reply = (await hooks.get("before_tool_call")?.(event, ctx)) as Question;
    const asked = heard.filter(({ hook }) => hook === "before_tool_call");
    expect(asked.map(({ place }) => place.user_dialog)).toEqual([undefined, true]);
    expect(Object.keys(reply)).toEqual(["requireApproval"]);
    expect(reply.requireApproval).toMatchObject({
      description: "exec ls\nCONFIRMATION_REQUIRED: sends",
      allowedDecisions: ["allow-once", "deny"],
    });
  });

  it("tells no result of a call that the user refused or nobody answered", async () => {
    const hooks = await load();
    answer = confirm;
    const results = async (decision: string): Promise<number> => {
      const reply = (await hooks.get("before_tool_call")?.(
        { ...event, toolCallId: decision },
        ctx,
      )) as Question;
      reply.requireApproval?.onResolution(decision);
      heard = [];
      await hooks.get("after_tool_call")?.({ ...event, toolCallId: decision }, ctx);
      // Reports go in order: behind this one nothing of the result is on its way.
      await hooks.get("session_end")?.({}, ctx);
      return heard.filter(({ hook }) => hook === "after_tool_call").length;
    };
    expect([await results("deny"), await results("timeout"), await results("allow-once")]).toEqual([0, 0, 1]);
  });

  it.each([[{ ...confirm, what: "" }], [{ ...confirm, reason: 7 }], [{ decision: "approve" }]])(
    "refuses a call after the question %j, which is none",
    async (spoken) => {
      const hooks = await load();
      answer = spoken;
      expect(await hooks.get("before_tool_call")?.(event, ctx)).toMatchObject({ block: true });
    },
  );
});
