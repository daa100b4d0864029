import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { claudeResult } from "../harness/hook-payloads.ts";
import { workPolicy } from "../harness/work-policy.ts";

const denyMake = `@id("deny.make")
@message("not here")
forbid(principal, action == Action::"run", resource);
`;

let rig: GateRig;
let one: RunningGate;
let two: RunningGate;
beforeAll(async () => {
  rig = await createGateRig();
  one = await rig.gate();
  two = await rig.gate();
});
afterAll(() => rig.close());

const tables = ["gate.decisions", "gate.capabilities", "gate.hook_calls", "vault.evidence", "outbox.events"];
const countAll = async (): Promise<number[]> => Promise.all(tables.map((table) => rig.count(table)));

describe("the same call again", () => {
  it("gets the stored answer and writes nothing", async () => {
    const call = ownRequest("shell.run", { command: "make" }, { tool_call_id: "again" });
    const first = (await one.post("/v1/gate/decide", call)).json as GateAnswer;
    const before = await countAll();
    const second = (await two.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(second).toEqual({ ...first, repeated: true });
    expect(await countAll()).toEqual(before);
  });

  it("makes one decision when it arrives many times in one group", async () => {
    const call = ownRequest("shell.run", { command: "make all" }, { tool_call_id: "burst" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => one.post("/v1/gate/decide", call)));
    const ids = new Set(answers.map(({ json }) => (json as GateAnswer).decision_id));
    expect(ids.size).toBe(1);
    expect(answers.filter(({ json }) => !(json as GateAnswer).repeated)).toHaveLength(1);
  });

  it("makes one decision when the same call arrives at two gates at once", async () => {
    const rounds = Array.from({ length: 25 }, (_, round) => `both-${String(round)}`);
    for (const id of rounds) {
      const call = ownRequest("shell.run", { command: `echo ${id}` }, { tool_call_id: id, session_id: id });
      const answers = await Promise.all(
        [one, two, one, two].map((gate) => gate.post("/v1/gate/decide", call)),
      );
      const found = answers.map(({ json }) => json as GateAnswer);
      expect(new Set(found.map((answer) => answer.decision_id)).size).toBe(1);
      expect(found.filter((answer) => !answer.repeated)).toHaveLength(1);
      expect(found.every((answer) => answer.decision === "allow")).toBe(true);
    }
    const doubled = await rig.admin.query(
      "SELECT decision_id FROM gate.capabilities GROUP BY decision_id HAVING count(*) > 1",
    );
    expect(doubled.rowCount).toBe(0);
  });

  it("is decided again when another policy is in force, and one call has one right", async () => {
    let policy = workPolicy();
    const other = workPolicy({ "limits.yaml": null, "static-deny.cedar": denyMake });
    const gate = await rig.gate({ policy: () => policy });
    const call = ownRequest(
      "shell.run",
      { command: "make" },
      { tool_call_id: "policy-1", session_id: "p-1" },
    );
    const first = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(first.decision).toBe("allow");
    policy = workPolicy({ "limits.yaml": null });
    const second = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(second).toMatchObject({
      decision: "allow",
      repeated: false,
      policy_revision: policy.revision,
    });
    expect(second.decision_id).not.toBe(first.decision_id);
    const rights = await rig.admin.query<{ id: string; ended: boolean }>(
      `SELECT capability_id AS id, revoked_at IS NOT NULL AS ended FROM gate.capabilities AS c
        JOIN gate.sessions AS s USING (session_key) WHERE s.session_id = 'p-1' ORDER BY issued_at`,
    );
    expect(rights.rows).toEqual([
      { id: first.capability?.id.slice(4), ended: true },
      { id: second.capability?.id.slice(4), ended: false },
    ]);
    const events = (await rig.events()).filter((event) => event.execution.session_id === "p-1");
    expect(events.filter(({ type }) => type === "agent.capability.revoked")).toMatchObject([
      { capability_id: first.capability?.id },
    ]);
    policy = other;
    const third = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(third).toMatchObject({ decision: "deny", repeated: false, policy_revision: other.revision });
    // A no stays, whatever policy comes.
    policy = workPolicy();
    const fourth = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(fourth).toMatchObject({ decision: "deny", repeated: true, decision_id: third.decision_id });
  });

  it("is not given a second right when its first one was used, whatever policy is in force", async () => {
    let policy = workPolicy();
    const gate = await rig.gate({ policy: () => policy });
    const call = ownRequest(
      "shell.run",
      { command: "make" },
      { tool_call_id: "policy-2", session_id: "p-2" },
    );
    const first = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    await rig.admin.query("UPDATE gate.capabilities SET calls_used = 1 WHERE capability_id = $1", [
      first.capability?.id.slice(4),
    ]);
    policy = workPolicy({ "limits.yaml": null });
    const second = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(second).toMatchObject({ decision_id: first.decision_id, repeated: true });
  });

  it("of a rewritten form is decided again when another policy is in force", async () => {
    let policy = workPolicy();
    const gate = await rig.gate({ policy: () => policy });
    const call = ownRequest(
      "shell.run",
      { command: "rewrite-me" },
      { tool_call_id: "policy-3", session_id: "p-3" },
    );
    const first = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(first.decision).toBe("modify");
    policy = workPolicy({ "rewrites.yaml": null });
    const second = (await gate.post("/v1/gate/decide", call)).json as GateAnswer;
    expect(second).toMatchObject({ decision: "allow", repeated: false });
    expect(second).not.toHaveProperty("modified_input");
  });

  it("is another call when the plan, the turn, the phase or the agent is another one", async () => {
    const base = { tool_call_id: "same-id" };
    const calls = [
      ownRequest("shell.run", { command: "a" }, base),
      ownRequest("shell.run", { command: "b" }, base),
      ownRequest("shell.run", { command: "a" }, { ...base, turn_id: "t-2" }),
      ownRequest("shell.run", { command: "a" }, { ...base, phase: "permission" }),
      ownRequest("shell.run", { command: "a" }, { ...base, agent_id: "child" }),
      ownRequest("shell.run", { command: "a" }, { ...base, working_directory: "/elsewhere" }),
    ];
    const answers = await Promise.all(calls.map((call) => one.post("/v1/gate/decide", call)));
    expect(new Set(answers.map(({ json }) => (json as GateAnswer).decision_id)).size).toBe(calls.length);
  });

  it("is the same call when only the model's description or time limit differs", async () => {
    const rest = { tool_call_id: "described" };
    const ask = async (input: object): Promise<GateAnswer> =>
      (await one.post("/v1/gate/decide", ownRequest("shell.run", { ...input }, rest))).json as GateAnswer;
    const first = await ask({ command: "ls", description: "lists", timeout: 1 });
    const second = await ask({ command: "ls", description: "shows files", timeout: 9 });
    expect(second).toMatchObject({ decision_id: first.decision_id, repeated: true });
  });

  it("is new each time when the runtime names no call", async () => {
    const call = { ...ownRequest("shell.run", { command: "ls" }), tool_call_id: undefined };
    const answers = [await one.post("/v1/gate/decide", call), await one.post("/v1/gate/decide", call)];
    expect(new Set(answers.map(({ json }) => (json as GateAnswer).decision_id)).size).toBe(2);
  });

  it("is denied when the tenant was frozen since, and allowed again afterwards", async () => {
    const call = ownRequest("shell.run", { command: "ls" }, { tool_call_id: "frozen-since" });
    const first = (await one.post("/v1/gate/decide", call)).json as GateAnswer;
    await rig.admin.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'acme'");
    const frozen = (await two.post("/v1/gate/decide", call)).json as GateAnswer;
    await rig.admin.query("UPDATE access.tenants SET state = 'active' WHERE tenant_id = 'acme'");
    expect(frozen).toMatchObject({ decision: "deny", reason_code: "TENANT_FROZEN", repeated: true });
    expect(frozen).not.toHaveProperty("capability");
    expect((await two.post("/v1/gate/decide", call)).json).toEqual({ ...first, repeated: true });
  });

  it("is never answered across tenants", async () => {
    const call = ownRequest("shell.run", { command: "ls" }, { tool_call_id: "shared-id" });
    const first = (await one.post("/v1/gate/decide", call)).json as GateAnswer;
    const other = await rig.token({ tenantId: "other" });
    const second = (await one.post("/v1/gate/decide", call, other)).json as GateAnswer;
    expect(second.repeated).toBe(false);
    expect(second.decision_id).not.toBe(first.decision_id);
    expect(second.correlation_id).not.toBe(first.correlation_id);
  });

  it("records an observing hook once", async () => {
    const result = claudeResult({ session_id: "observed", tool_use_id: "toolu_once" });
    const before = await rig.count("outbox.events");
    const replies = await Promise.all(
      [one, two, one, two].map((gate) => gate.post("/v1/hooks/claude-code", result)),
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    // The result, and that nothing was decided on its call.
    expect(await rig.count("outbox.events")).toBe(before + 2);
    const other = await one.post("/v1/hooks/claude-code", { ...result, tool_response: { stdout: "y" } });
    expect(other.status).toBe(200);
    expect(await rig.count("outbox.events")).toBe(before + 4);
  });
});
