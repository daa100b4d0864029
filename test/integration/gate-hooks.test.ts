import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { requestPlace } from "../../services/gate/prepare-call.ts";
import { openInline, openPayload } from "../../services/platform/vault-seal.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { claudeCall, claudeDenial, claudePrompt, claudeResult } from "../harness/hook-payloads.ts";

let rig: GateRig;
let running: RunningGate;
beforeAll(async () => {
  rig = await createGateRig();
  running = await rig.gate();
});
afterAll(() => rig.close());

describe("a hook of a real runtime", () => {
  it("is allowed, and request, decision, capability and events are committed before the answer leaves", async () => {
    const reply = await running.post("/v1/hooks/claude-code", claudeCall("npm test"));
    expect(reply).toMatchObject({ status: 200, json: {} });
    const decisions = await rig.admin.query<{ answer: GateAnswer; payload_ref: string; facts: unknown }>(
      "SELECT * FROM gate.decisions WHERE request -> 'input' ->> 'command' = 'npm test'",
    );
    expect(decisions.rows).toHaveLength(1);
    const { answer, payload_ref: ref, facts } = decisions.rows[0] ?? expect.fail();
    expect(answer).toMatchObject({
      decision: "allow",
      reason_code: "ALLOWED",
      matched_rules: ["allow.shell", "limit.command-time"],
    });
    expect(facts).toMatchObject({
      tenant: { state: "active", version: 1 },
      session: { version: 0, labels: [] },
    });
    const capability = await rig.admin.query(
      "SELECT * FROM gate.capabilities WHERE decision_id = $1 AND plan_digest = $2 AND max_calls = 1",
      [answer.decision_id.slice(4), answer.plan_digest],
    );
    expect(capability.rowCount).toBe(1);
    const events = (await rig.events()).filter((one) => one.plan_digest === answer.plan_digest);
    expect(events.map((one) => one.type)).toEqual([
      "agent.tool.requested",
      "agent.tool.authorized",
      "agent.capability.issued",
    ]);
    const [requested, authorized, issued] = events;
    expect(requested).toMatchObject({
      payload_ref: ref,
      correlation_id: answer.correlation_id,
      tenant_id: "acme",
    });
    expect(requested?.redacted_summary).toMatchObject({ effect_class: "execute", tool_alias: "Bash" });
    expect(authorized).toMatchObject({
      causation_id: requested?.event_id,
      capability_id: answer.capability?.id,
    });
    expect(issued).toMatchObject({
      causation_id: authorized?.event_id,
      capability_id: answer.capability?.id,
    });
    const stored = await openPayload(rig.database(rig.test.url), rig.keys, ref);
    expect(stored.bytes.toString()).toContain("npm test");
    expect(requested?.payload_digest).toBe(stored.digest);
  });

  it("is denied in the runtime's own form, with the rule's words", async () => {
    const reply = await running.post("/v1/hooks/claude-code", claudeCall("sudo rm -rf /"));
    expect(claudeDenial(reply.json)).toContain("STATIC_DENY");
    const last = (await rig.events()).slice(-2);
    expect(last.map((one) => one.type)).toEqual(["agent.tool.requested", "agent.tool.denied"]);
    expect(last[1]?.causation_id).toBe(last[0]?.event_id);
    expect(last[1]?.policy).toMatchObject({
      decision: "deny",
      risk: "high",
      matched_rules: expect.arrayContaining(["allow.shell", "deny.wide-delete"]) as unknown,
    });
  });

  it("links a result to its call, the call to its turn, the turn to its session", async () => {
    const corpus = async (name: string): Promise<Record<string, unknown>> =>
      JSON.parse(await readFile(`test/corpus/hooks/claude-code/${name}.json`, "utf8")) as Record<
        string,
        unknown
      >;
    const sessionId = "chain";
    const same = { session_id: sessionId, prompt_id: "p-1" };
    const start = { ...(await corpus("SessionStart")), session_id: sessionId };
    const call = claudeCall("ls", { ...same, tool_use_id: "toolu_chain" });
    const prompt = claudePrompt("please", same);
    const result = claudeResult({ ...same, tool_use_id: "toolu_chain" });
    for (const payload of [start, prompt, call, result]) {
      expect((await running.post("/v1/hooks/claude-code", payload)).status).toBe(200);
    }
    const events = (await rig.events()).filter((one) => one.execution.session_id === sessionId);
    const idOf = (type: string): string | undefined => events.find((one) => one.type === type)?.event_id;
    const causeOf = (type: string): string | null | undefined =>
      events.find((one) => one.type === type)?.causation_id;
    expect(new Set(events.map((one) => one.correlation_id)).size).toBe(1);
    expect(causeOf("agent.tool.completed")).toBe(idOf("agent.tool.requested"));
    expect(events.find((one) => one.event_id === causeOf("agent.tool.requested"))?.type).toMatch(
      /prompt|turn/,
    );
  });

  it("is refused when nobody understands it, and its bytes are kept", async () => {
    const before = await rig.count("gate.decisions");
    const unknown = { ...claudeCall("ls"), hook_event_name: "SomethingNew" };
    for (const body of [
      "{not json",
      "[1,2]",
      '"text"',
      JSON.stringify(unknown),
      "[".repeat(100) + "]".repeat(100),
    ]) {
      const reply = await running.post("/v1/hooks/claude-code", body);
      expect(reply.status).toBe(200);
      expect(JSON.stringify(reply.json)).toContain("PAYLOAD_UNRECOGNIZED");
      const event = (await rig.events()).at(-1);
      expect(event?.type).toBe("fabric.adapter.unrecognized");
      const kept = await openPayload(rig.database(rig.test.url), rig.keys, event?.payload_ref ?? "");
      expect(kept.bytes.toString()).toBe(body);
    }
    expect(await rig.count("gate.decisions")).toBe(before);
  });

  it("stores the exact request beside the masked one", async () => {
    await running.post("/v1/hooks/claude-code", claudeCall("deploy --token=abc", { session_id: "sealed" }));
    const found = await rig.admin.query<{
      decision_id: string;
      request: { input: unknown };
      request_sealed: Buffer;
    }>(
      "SELECT decision_id, request, request_sealed FROM gate.decisions WHERE request ->> 'session_id' = 'sealed'",
    );
    const row = found.rows[0] ?? expect.fail();
    expect(JSON.stringify(row.request)).not.toContain("--token=abc");
    const exact = await openInline(
      rig.keys,
      "acme",
      requestPlace(`dec_${row.decision_id}`),
      row.request_sealed,
    );
    expect(exact.toString()).toContain("--token=abc");
  });

  it("keeps a payload over 64 KiB out of the group's commit, and decides on it all the same", async () => {
    const content = "x".repeat(200_000);
    const payload = claudeCall("", {
      session_id: "large",
      tool_name: "Write",
      tool_input: { file_path: "/h/project/a", content },
    });
    expect((await running.post("/v1/hooks/claude-code", payload)).json).toEqual({});
    const found = await rig.admin.query<{ request: unknown; request_ref: string; payload_ref: string }>(
      "SELECT * FROM gate.decisions WHERE request ->> 'session_id' = 'large'",
    );
    const row = found.rows[0] ?? expect.fail();
    expect(JSON.stringify(row.request).length).toBeLessThan(1_000);
    const exact = await openPayload(rig.database(rig.test.url), rig.keys, row.request_ref);
    expect(JSON.parse(exact.bytes.toString())).toMatchObject({ input: { content } });
    expect(
      (await openPayload(rig.database(rig.test.url), rig.keys, row.payload_ref)).bytes.length,
    ).toBeGreaterThan(200_000);
  });
});

describe("a harness of one's own", () => {
  it("gets the gate's answer", async () => {
    const reply = await running.post("/v1/gate/decide", ownRequest("shell.run", { command: "make" }));
    expect(reply.json).toMatchObject({
      decision: "allow",
      reason_code: "ALLOWED",
      policy_revision: expect.stringMatching(/^policy@\d{4}-\d{2}-\d{2}\.\d+\+[0-9a-f]{12}$/) as string,
      plan_digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string,
      correlation_id: expect.stringMatching(/^cor_[0-9a-f-]{36}$/) as string,
      capability: {
        id: expect.stringMatching(/^cap_/) as string,
        token: expect.stringMatching(/^ey[\w-]+\.[\w-]+\.[\w-]+$/) as string,
      },
      repeated: false,
    });
  });

  it("names the token's subject as who acted, whatever the request claims", async () => {
    const asked = ownRequest(
      "shell.run",
      { command: "make who" },
      { user_id: "somebody-else", session_id: "claims" },
    );
    expect((await running.post("/v1/gate/decide", asked)).json).toMatchObject({ decision: "allow" });
    const events = (await rig.events()).filter((one) => one.execution.session_id === "claims");
    expect(events.map(({ type, actor }) => [type, actor.user_id])).toEqual([
      ["agent.tool.requested", "dev"],
      ["agent.tool.authorized", "dev"],
      ["agent.capability.issued", "dev"],
    ]);
    const stored = await rig.admin.query<{ claim: string }>(
      "SELECT request ->> 'user_id' AS claim FROM gate.decisions WHERE request ->> 'session_id' = 'claims'",
    );
    // What the body claims stays in the payload; what is judged, counted and stored is the token's.
    expect(stored.rows).toEqual([{ claim: "dev" }]);
  });

  it("takes no caller's word for a dialog of the user", async () => {
    const asked = (session: string) =>
      ownRequest(
        "shell.run",
        { command: "npm install left-pad" },
        { user_dialog: true, session_id: session },
      );
    const { json } = await running.post("/v1/gate/decide", asked("dialog-claimed"));
    expect(json).toMatchObject({ decision: "require_approval" });
    expect(json).not.toHaveProperty("confirm");
    const reported = {
      policy_revision: (json as GateAnswer).policy_revision,
      decided_at: new Date().toISOString(),
      request: asked("dialog-reported"),
    };
    expect(await running.post("/v1/gate/local-decisions", { decisions: [reported] })).toMatchObject({
      status: 200,
    });
    const stored = await rig.admin.query<{ request: object }>(
      "SELECT request FROM gate.decisions WHERE request ->> 'session_id' = ANY ($1)",
      [["dialog-claimed", "dialog-reported"]],
    );
    expect(stored.rows.length).toBeGreaterThan(0);
    for (const { request } of stored.rows) expect(request).not.toHaveProperty("user_dialog");
  });

  it("needs no capability to read", async () => {
    const reply = await running.post("/v1/gate/decide", ownRequest("file.read", { path: "src/a.ts" }));
    expect(reply.json).toMatchObject({ decision: "allow" });
    expect(reply.json).not.toHaveProperty("capability");
  });

  it("is told what is wrong with its request, without its values", async () => {
    const reply = await running.post("/v1/gate/decide", { tool: "rm", input: { password: "hunter2" } });
    expect(reply).toMatchObject({ status: 400, json: { code: "REQUEST_INVALID", status: 400 } });
    expect(reply.headers.get("content-type")).toContain("application/problem+json");
    expect(reply.text).not.toContain("hunter2");
  });

  it("records a command with a NUL or half a character, and denies it", async () => {
    for (const command of ["ls\u0000; rm", "echo \ud800"]) {
      const reply = await running.post("/v1/gate/decide", ownRequest("shell.run", { command }));
      expect(reply.json).toMatchObject({ decision: "deny", reason_code: "INPUT_UNREADABLE" });
    }
  });
});
