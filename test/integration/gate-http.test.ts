import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAuthenticator, issueLocalToken } from "../../services/platform/auth.ts";
import { newAuthKeys } from "../../services/platform/auth-keys.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createHttpServer } from "../../services/platform/http.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { claudeCall, claudeDenial, claudeEnd } from "../harness/hook-payloads.ts";

let rig: GateRig;
let running: RunningGate;
beforeAll(async () => {
  rig = await createGateRig();
  running = await rig.gate();
});
afterAll(() => rig.close());

const call = ownRequest("shell.run", { command: "ls" });
const ask = (headers: Record<string, string>, body: string = JSON.stringify(call)): Promise<Response> =>
  fetch(`${running.url}/v1/gate/decide`, { method: "POST", headers, body });

/** The problem, less the request's own id. */
const problemOf = async (response: Response): Promise<Record<string, unknown>> => {
  expect(response.headers.get("content-type")).toContain("application/problem+json");
  const { instance, ...rest } = (await response.json()) as Record<string, unknown>;
  expect(instance).toMatch(/^req_[0-9a-f-]{36}$/);
  return rest;
};

describe("a client that hangs up", () => {
  it("is no error of ours", async () => {
    const before = rig.logLines.length;
    const { hostname, port } = new URL(running.url);
    const socket = connect(Number(port), hostname);
    const token = await rig.token();
    socket.write(
      `POST /v1/gate/decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"run`,
    );
    await eventually(
      () =>
        new Promise<boolean>((resolve) =>
          running.gate.app.server.getConnections((_error, count) => resolve(count > 0)),
        ),
    );
    // The head has been read when the server has answered the next one.
    await ask({ authorization: `Bearer ${token}`, "content-type": "application/json" });
    socket.destroy();
    await eventually(() => rig.logLines.slice(before).some((line) => line.includes("the client hung up")));
    expect(rig.logLines.slice(before).filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });
});

describe("who may ask", () => {
  it("answers a wrong, an expired, a foreign and a broken token with the same words", async () => {
    const foreign = await issueLocalToken({
      tenantId: "acme",
      subject: "x",
      roles: ["runtime"],
      lifetimeSeconds: 600,
      privateKey: newAuthKeys().signing,
      clock: systemClock,
    });
    const good = await rig.token();
    const tokens = [
      await rig.token({ lifetimeSeconds: -60 }),
      foreign,
      "not.a.token",
      `${good.slice(0, -4)}AAAA`,
      `${Buffer.from('{"alg":"none"}').toString("base64url")}.${good.split(".")[1] ?? ""}.`,
    ];
    const problems = [];
    for (const token of tokens) {
      const response = await ask({ authorization: `Bearer ${token}`, "content-type": "application/json" });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toContain("Bearer");
      problems.push(await problemOf(response));
    }
    expect(new Set(problems.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(problems[0]).toMatchObject({ code: "TOKEN_INVALID", status: 401 });
  });

  it("asks for a token", async () => {
    const response = await ask({ "content-type": "application/json" });
    expect([response.status, (await problemOf(response))["code"]]).toEqual([401, "TOKEN_MISSING"]);
  });

  it("wants the role, and does not take one that the key cannot vouch for", async () => {
    for (const roles of [["auditor"], ["admin", "approver"], []] as const) {
      const token = await rig.token({ roles });
      const response = await ask({ authorization: `Bearer ${token}`, "content-type": "application/json" });
      expect([response.status, (await problemOf(response))["code"]]).toEqual([403, "ROLE_MISSING"]);
    }
  });

  it("says the same of every tenant that is not served here, and makes no key for it", async () => {
    for (const [path, body, status] of [
      ["/v1/gate/decide", call, 403],
      ["/v1/hooks/claude-code", claudeCall("ls"), 200],
      ["/v1/hooks/claude-code", claudeEnd(), 403],
      ["/v1/hooks/claude-code", { big: "x".repeat(100_000) }, 200],
    ] as const) {
      const answers = await Promise.all(
        ["nobody", "acme-2"].map(async (tenantId) => running.post(path, body, await rig.token({ tenantId }))),
      );
      const texts = answers.map(({ text }) => text.replace(/req_[0-9a-f-]+/, "req"));
      expect(answers.map((one) => one.status)).toEqual([status, status]);
      expect(texts[0]).toBe(texts[1]);
      expect(texts[0]).toContain("TENANT_UNKNOWN");
      expect(texts[0]).not.toMatch(/nobody|acme/);
    }
    const keys = await rig.admin.query(
      "SELECT 1 FROM vault.tenant_keys WHERE tenant_id IN ('nobody', 'acme-2')",
    );
    expect(keys.rowCount).toBe(0);
  });

  it("does not start with a route that declares no role", () => {
    const app = createHttpServer({
      log: createLog({ service: "x", level: "silent" }),
      metrics: createMetrics(),
      authenticator: createAuthenticator({ localKeys: [], clock: systemClock }),
      access: {},
      probes: {},
    });
    expect(() => app.get("/v1/forgotten", () => ({}))).toThrow(/declares no role/);
  });
});

describe("what may be sent", () => {
  it.each([
    [
      "a body over the limit",
      413,
      "BODY_TOO_LARGE",
      { "content-type": "application/json" },
      "x".repeat(4_200_000),
    ],
    ["another content type", 415, "MEDIA_TYPE_UNSUPPORTED", { "content-type": "text/plain" }, "{}"],
    [
      "another charset",
      415,
      "MEDIA_TYPE_UNSUPPORTED",
      { "content-type": "application/json; charset=utf-16" },
      "{}",
    ],
    [
      "a coded body",
      415,
      "MEDIA_TYPE_UNSUPPORTED",
      { "content-type": "application/json", "content-encoding": "gzip" },
      "{}",
    ],
    ["no JSON", 400, "BODY_NOT_JSON", { "content-type": "application/json" }, '{"password": "hunter2'],
    [
      "JSON too deep",
      400,
      "BODY_NOT_JSON",
      { "content-type": "application/json" },
      "[".repeat(65) + "]".repeat(65),
    ],
    ["an empty body", 400, "BODY_NOT_JSON", { "content-type": "application/json" }, ""],
  ])("refuses %s", async (_name, status, code, headers, body) => {
    const response = await ask({ authorization: `Bearer ${await rig.token()}`, ...headers }, body);
    expect(response.status).toBe(status);
    const problem = await problemOf(response);
    expect(problem).toMatchObject({ code, status });
    expect(JSON.stringify(problem)).not.toMatch(/hunter2|at .*\.ts/);
  });

  it("takes a body that says that it is UTF-8", async () => {
    const headers = {
      authorization: `Bearer ${await rig.token()}`,
      "content-type": 'application/json; charset="UTF-8"',
      "content-encoding": "identity",
    };
    expect((await ask(headers)).status).toBe(200);
  });

  it("answers a client that reads nothing before it has sent all of a body over the limit, and closes", async () => {
    const { hostname, port } = new URL(running.url);
    const bytes = 8_000_000;
    const token = await rig.token();
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      let text = "";
      socket.on("error", reject).on("close", () => resolve(text));
      socket.write(
        `POST /v1/gate/decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${String(bytes)}\r\n\r\n`,
      );
      socket.write("x".repeat(bytes), () => socket.on("data", (chunk) => (text += chunk.toString("utf8"))));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 413 [^]*connection: close[^]*"code":"BODY_TOO_LARGE"/i);
  });

  it("answers an unknown address, method and runtime with problem details", async () => {
    const authorization = `Bearer ${await rig.token()}`;
    for (const [method, path] of [
      ["GET", "/v1/nothing?token=abc"],
      ["DELETE", "/v1/gate/decide"],
      ["GET", "/%zz"],
    ] as const) {
      const response = await fetch(`${running.url}${path}`, { method, headers: { authorization } });
      const problem = await problemOf(response);
      expect([404, 400]).toContain(response.status);
      expect(JSON.stringify(problem)).not.toContain("abc");
    }
    expect((await running.post("/v1/hooks/no-such-runtime", {})).json).toMatchObject({
      code: "RUNTIME_UNKNOWN",
      status: 404,
    });
  });

  it("closes a connection whose head is no HTTP, or too large", async () => {
    const { port } = new URL(running.url);
    for (const head of [
      "NONSENSE\r\n\r\n",
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`,
    ]) {
      const answer = await new Promise<string>((resolve, reject) => {
        const socket = connect(Number(port), "127.0.0.1", () => socket.write(head));
        let text = "";
        socket.on("data", (chunk) => (text += chunk.toString()));
        socket.on("close", () => resolve(text));
        socket.on("error", reject);
      });
      expect(answer).toMatch(/^HTTP\/1\.1 4\d\d/);
    }
  });

  it("refuses a request with too many header fields", async () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, field) => [`x-${String(field)}`, "1"]));
    const response = await fetch(`${running.url}/healthz`, { headers: many });
    expect([response.status, (await problemOf(response))["code"]]).toEqual([400, "REQUEST_INVALID"]);
  });

  it("says who is up, without a token", async () => {
    const [live, ready, metrics] = await Promise.all(
      ["/healthz", "/readyz", "/metrics"].map((path) => fetch(`${running.url}${path}`)),
    );
    expect(live?.status).toBe(200);
    expect(await ready?.json()).toMatchObject({
      status: "ready",
      dependencies: { postgres: { state: "up" }, policy: { state: "up" } },
    });
    expect(await metrics?.text()).toContain("fabric_gate_queue_depth");
  });
});

describe("a hook that fails", () => {
  /** What the client honours whatever its event is: a block in the body, and the exit code for a command hook's shim. */
  const expectBlock = async (response: Response, code: string): Promise<void> => {
    expect(response.status).toBe(200);
    expect(response.headers.get("x-fabric-exit-code")).toBe("2");
    expect(response.headers.get("content-type")).toContain("application/json");
    const body = (await response.json()) as { decision: string; reason: string };
    expect(body.decision).toBe("block");
    expect(body.reason).toMatch(new RegExp(`^${code}: .+`));
    expect(body.reason).not.toMatch(/hunter2|at .*\.ts/);
  };
  const hook = (runtime: string, headers: Record<string, string>, body?: string): Promise<Response> =>
    fetch(`${running.url}/v1/hooks/${runtime}`, {
      method: "POST",
      headers,
      ...(body === undefined ? {} : { body }),
    });
  const json = { "content-type": "application/json" };

  describe.each(["claude-code", "codex"])("of %s", (runtime) => {
    it("before it is read leaves in the blocking form, never as a status", async () => {
      const good = { authorization: `Bearer ${await rig.token()}` };
      const auditor = { authorization: `Bearer ${await rig.token({ roles: ["auditor"] })}` };
      const body = JSON.stringify(claudeCall("ls"));
      await expectBlock(await hook(runtime, json, body), "TOKEN_MISSING");
      await expectBlock(
        await hook(runtime, { ...json, authorization: "Bearer hunter2" }, body),
        "TOKEN_INVALID",
      );
      await expectBlock(await hook(runtime, { ...json, ...auditor }, body), "ROLE_MISSING");
      await expectBlock(await hook(runtime, { ...json, ...good }, "x".repeat(4_200_000)), "BODY_TOO_LARGE");
      await expectBlock(
        await hook(runtime, { "content-type": "text/plain", ...good }, body),
        "MEDIA_TYPE_UNSUPPORTED",
      );
      await expectBlock(await hook(runtime, good), "MEDIA_TYPE_UNSUPPORTED");
      const many = Object.fromEntries(Array.from({ length: 100 }, (_, field) => [`x-${String(field)}`, "1"]));
      await expectBlock(await hook(runtime, { ...json, ...good, ...many }, body), "REQUEST_INVALID");
    });

    it("that is no JSON is blocked, and recorded", async () => {
      const good = { authorization: `Bearer ${await rig.token()}` };
      await expectBlock(
        await hook(runtime, { ...json, ...good }, '{"password": "hunter2'),
        "PAYLOAD_UNRECOGNIZED",
      );
      expect((await rig.events()).at(-1)?.type).toBe("fabric.adapter.unrecognized");
    });
  });

  it("blocks a token that cannot be checked, and tells nothing of why", async () => {
    const failing = await rig.gate({
      authenticator: { authenticate: () => Promise.reject(new Error("hunter2")) },
    });
    const response = await fetch(`${failing.url}/v1/hooks/codex`, {
      method: "POST",
      headers: { ...json, authorization: "Bearer x" },
      body: "{}",
    });
    await expectBlock(response, "INTERNAL");
  });

  it("is counted by its code, and logged without what it held", async () => {
    const before = rig.logLines.length;
    await hook("codex", json, '{"password": "hunter2"}');
    const metrics = await (await fetch(`${running.url}/metrics`)).text();
    expect(metrics).toMatch(/fabric_gate_hook_refusals_total\{runtime="codex",code="TOKEN_MISSING"\} [1-9]/);
    const warned = rig.logLines.slice(before).filter((line) => line.includes('"level":"warn"'));
    expect(warned.join()).toContain("TOKEN_MISSING");
    expect(warned.join()).not.toContain("hunter2");
  });

  it("answers a question of a tenant that is not served in the form of its event", async () => {
    const token = await rig.token({ tenantId: "nobody" });
    const reply = await running.post("/v1/hooks/claude-code", claudeCall("ls"), token);
    expect(reply.status).toBe(200);
    expect(claudeDenial(reply.json)).toMatch(/^TENANT_UNKNOWN: /);
  });

  it("answers a full queue in the form of the event", async () => {
    const full = await rig.gate({ maxWaiting: 0 });
    const reply = await full.post("/v1/hooks/claude-code", claudeCall("ls"));
    expect(reply.status).toBe(200);
    expect(claudeDenial(reply.json)).toMatch(/^OVERLOADED: /);
  });
});
