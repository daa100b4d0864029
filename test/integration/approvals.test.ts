import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { expireApprovals } from "../../services/gate/approval/expire-approvals.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RigReply, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest, testCodec } from "../harness/gate-rig.ts";
import { claudeCall, claudeDenial } from "../harness/hook-payloads.ts";
import { workPolicy } from "../harness/work-policy.ts";

let rig: GateRig;
let one: RunningGate;
let two: RunningGate;
let approver: string;
const policy = workPolicy();
beforeAll(async () => {
  rig = await createGateRig();
  one = await rig.gate({ policy: () => policy });
  two = await rig.gate({ policy: () => policy });
  approver = await rig.token({ roles: ["approver"], subject: "ada" });
});
afterAll(() => rig.close());

const call = (command: string, session: string, rest: Record<string, unknown> = {}): object =>
  ownRequest("shell.run", { command }, { session_id: session, ...rest });
const decide = async (gate: RunningGate, body: object): Promise<GateAnswer> =>
  (await gate.post("/v1/gate/decide", body)).json as GateAnswer;
const ticketOf = (answer: GateAnswer): string => answer.approval?.id ?? "";
const approve = (answer: GateAnswer, token = approver, gate = one): Promise<RigReply> =>
  gate.post(
    `/v1/approvals/${ticketOf(answer)}/approve`,
    { plan_digest: answer.plan_digest, note: "looked at it" },
    token,
  );
const typesOf = async (session: string): Promise<string[]> =>
  (await rig.events()).filter((event) => event.execution.session_id === session).map(({ type }) => type);

describe("a call that needs an approval", () => {
  it("is denied with a ticket, and passes by the identical retry once a person agreed", async () => {
    const first = await decide(one, call("ask me", "s-pass"));
    expect(first).toMatchObject({
      decision: "require_approval",
      reason_code: "APPROVAL_REQUIRED",
      risk: { score: 45, level: "medium" },
    });
    expect(first.message).toContain(ticketOf(first));
    expect(first.message).toContain("ask again with the same input once it is approved");
    expect(first).not.toHaveProperty("capability");
    expect((await approve(first)).json).toMatchObject({ state: "approved", decided_by: "ada" });
    const second = await decide(two, call("ask me", "s-pass"));
    expect(second).toMatchObject({ decision: "allow", reason_code: "APPROVED" });
    expect(second.plan_digest).toBe(first.plan_digest);
    expect(second.capability?.token).toMatch(/^ey/);
    expect(await typesOf("s-pass")).toEqual([
      "agent.tool.requested",
      "agent.tool.denied",
      "agent.effect.prepared",
      "agent.approval.requested",
      "agent.approval.granted",
      "agent.tool.requested",
      "agent.tool.authorized",
      "agent.approval.consumed",
      "agent.capability.issued",
    ]);
  });

  it("passes once: the next identical call asks anew", async () => {
    const first = await decide(one, call("ask once", "s-once"));
    await approve(first);
    expect(await decide(one, call("ask once", "s-once"))).toMatchObject({ decision: "allow" });
    const third = await decide(one, call("ask once", "s-once"));
    expect(third.decision).toBe("require_approval");
    expect(ticketOf(third)).not.toBe(ticketOf(first));
  });

  it("is used up by one of sixteen parallel calls at two gates", async () => {
    const first = await decide(one, call("ask all", "s-many"));
    await approve(first);
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, index) =>
        decide(index % 2 === 0 ? one : two, call("ask all", "s-many")),
      ),
    );
    expect(answers.filter(({ decision }) => decision === "allow")).toHaveLength(1);
  });

  it("repeats its allow to the same call without using a second approval", async () => {
    const retried = call("ask again", "s-idem", { tool_call_id: "the-call" });
    const first = await decide(one, retried);
    expect(await decide(two, retried)).toEqual({ ...first, repeated: true });
    await approve(first);
    const second = await decide(one, retried);
    expect(second).toMatchObject({ decision: "allow", repeated: false });
    expect(await decide(two, retried)).toEqual({ ...second, repeated: true });
    const rows = await rig.admin.query(
      "SELECT superseded_by IS NULL AS stands FROM gate.decisions WHERE request ->> 'session_id' = 's-idem' ORDER BY decision_id",
    );
    expect(rows.rows).toEqual([{ stands: false }, { stands: true }]);
  });

  it("asks once when the same plan is asked for at two gates", async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        decide(index % 2 === 0 ? one : two, call("ask same", "s-same")),
      ),
    );
    expect(new Set(answers.map(ticketOf)).size).toBe(1);
    expect(
      await rig.count(
        "gate.approvals WHERE requester = 'dev' AND tool = 'shell.run' AND plan::text LIKE '%ask same%'",
      ),
    ).toBe(1);
  });

  it("is not for another session, another agent or another input", async () => {
    const first = await decide(one, call("ask bound", "s-bound"));
    await approve(first);
    for (const other of [
      call("ask bound", "s-bound-2"),
      call("ask bound", "s-bound", { agent_id: "child" }),
      call("ask bound ", "s-bound", { working_directory: "/elsewhere" }),
    ]) {
      expect((await decide(one, other)).decision).toBe("require_approval");
    }
    expect((await decide(one, call("ask bound", "s-bound"))).decision).toBe("allow");
  });

  it("passes whatever the model says of it: description and time limit are no part of the plan", async () => {
    const asked = (description: string): object =>
      ownRequest("shell.run", { command: "ask described", description }, { session_id: "s-described" });
    const first = await decide(one, asked("first words"));
    await approve(first);
    expect(await decide(two, asked("other words"))).toMatchObject({
      decision: "allow",
      reason_code: "APPROVED",
    });
  });

  it("survives a restart of the gate", async () => {
    const before = await rig.gate({ policy: () => policy });
    const first = await decide(before, call("ask over", "s-restart"));
    await before.gate.close();
    const after = await rig.gate({ policy: () => policy });
    expect((await approve(first, approver, after)).status).toBe(200);
    expect((await decide(after, call("ask over", "s-restart"))).decision).toBe("allow");
  });

  it("stands for the runtime's own question about the call that used it up, and for nothing more", async () => {
    const first = await decide(one, call("ask twice over", "s-question"));
    await approve(first);
    expect((await decide(one, call("ask twice over", "s-question"))).decision).toBe("allow");
    const question = await decide(two, call("ask twice over", "s-question", { phase: "permission" }));
    expect(question).toMatchObject({ decision: "allow", reason_code: "APPROVED" });
    expect(question).not.toHaveProperty("capability");
    expect((await decide(two, call("ask twice over", "s-question"))).decision).toBe("require_approval");
  });

  it("is denied when too many of its session are open", async () => {
    for (let open = 0; open < 10; open += 1) {
      expect((await decide(one, call(`ask ${String(open)}`, "s-flood"))).decision).toBe("require_approval");
    }
    expect(await decide(one, call("ask once more", "s-flood"))).toMatchObject({
      decision: "deny",
      reason_code: "TOO_MANY_APPROVALS",
    });
    expect((await decide(one, call("ask 3", "s-flood"))).decision).toBe("require_approval");
  });

  it("is never one too many of its session, at however many gates they are asked for at once", async () => {
    for (let round = 0; round < 5; round += 1) {
      const session = `s-flood-${String(round)}`;
      const answers = await Promise.all(
        Array.from({ length: 24 }, (_, index) =>
          decide(index % 2 === 0 ? one : two, call(`ask ${String(index)}`, session)),
        ),
      );
      const asked = answers.filter(({ decision }) => decision === "require_approval");
      expect(asked).toHaveLength(10);
      expect(
        new Set(answers.filter((one) => !asked.includes(one)).map((answer) => answer.reason_code)),
      ).toEqual(new Set(["TOO_MANY_APPROVALS"]));
    }
  });

  it("tells Claude Code the ticket and what to do next", async () => {
    const reply = await one.post("/v1/hooks/claude-code", claudeCall("ask hook", { session_id: "s-hook" }));
    const text = claudeDenial(reply.json);
    expect(text).toMatch(/APPROVAL_REQUIRED: .*apr_[0-9a-f-]{36}/);
    expect(text).toContain("ask again with the same input once it is approved");
  });
});

describe("a person's word", () => {
  it("is not for the one who asked, nor for who works in the session", async () => {
    const first = await decide(one, call("ask own", "s-own"));
    const self = await rig.token({ roles: ["approver"], subject: "dev" });
    expect(await approve(first, self)).toMatchObject({ status: 403, json: { code: "APPROVAL_OWN" } });
    const mate = await rig.token({ subject: "mate" });
    await one.post("/v1/gate/decide", call("ls", "s-own"), mate);
    const mateApproves = await rig.token({ roles: ["approver"], subject: "mate" });
    expect((await approve(first, mateApproves)).status).toBe(403);
    expect((await approve(first, await rig.token({ roles: ["runtime"] }))).status).toBe(403);
  });

  it("holds for the plan that was shown, and for nothing else", async () => {
    const first = await decide(one, call("ask shown", "s-shown"));
    const wrong = await one.post(
      `/v1/approvals/${ticketOf(first)}/approve`,
      { plan_digest: `sha256:${"0".repeat(64)}` },
      approver,
    );
    expect(wrong).toMatchObject({ status: 409, json: { code: "APPROVAL_DIGEST" } });
    expect((await decide(one, call("ask shown", "s-shown"))).decision).toBe("require_approval");
  });

  it("is given once", async () => {
    const first = await decide(one, call("ask twice", "s-twice"));
    await approve(first);
    const again = await approve(first);
    expect(again).toMatchObject({ status: 409, json: { code: "APPROVAL_DECIDED" } });
    expect(again.text).toContain("approved");
    const refused = await one.post(`/v1/approvals/${ticketOf(first)}/refuse`, {}, approver);
    expect(refused.status).toBe(409);
  });

  it("can be no, and the same plan stays refused", async () => {
    const first = await decide(one, call("ask no", "s-no"));
    const refused = await one.post(
      `/v1/approvals/${ticketOf(first)}/refuse`,
      { note: "not today" },
      approver,
    );
    expect(refused.json).toMatchObject({ state: "refused", note: "not today" });
    expect(await decide(one, call("ask no", "s-no"))).toMatchObject({
      decision: "deny",
      reason_code: "APPROVAL_REFUSED",
    });
  });

  it("comes too late after its end: expired is denied, and is said once", async () => {
    const first = await decide(one, call("ask-briefly", "s-late"));
    const list = async (): Promise<unknown[]> => {
      const reply = await one.get("/v1/approvals?state=expired&session=s-late", approver);
      return (reply.json as { approvals: unknown[] }).approvals;
    };
    await eventually(async () => (await list()).length === 1);
    expect(await approve(first)).toMatchObject({ status: 409, json: { code: "APPROVAL_EXPIRED" } });
    const again = await decide(one, call("ask-briefly", "s-late"));
    expect(again.decision).toBe("require_approval");
    expect(ticketOf(again)).not.toBe(ticketOf(first));
    const deps = { database: rig.database(), codec: testCodec(), clock: systemClock, environment: "test" };
    const told = async (): Promise<number> =>
      (await rig.events()).filter(
        (event) => event.type === "agent.approval.expired" && event.approval_id === ticketOf(first),
      ).length;
    // Another gate may be at it just now.
    await eventually(async () => {
      await expireApprovals(deps);
      return (await told()) > 0;
    });
    await expireApprovals(deps);
    expect(await told()).toBe(1);
  });

  it("given in time does not outlive the approval", async () => {
    const first = await decide(one, call("ask-briefly", "s-unused"));
    expect((await approve(first)).status).toBe(200);
    await eventually(async () => {
      const row = await one.get(`/v1/approvals/${ticketOf(first)}`, approver);
      return (row.json as { state: string }).state === "expired";
    });
    expect((await decide(one, call("ask-briefly", "s-unused"))).decision).toBe("require_approval");
  });

  it("is about the frozen plan, exactly, with what the policy of now says of it", async () => {
    const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const first = await decide(one, call(`ask with ${secret}`, "s-exact"));
    const stored = await rig.admin.query<{ plan: unknown }>(
      "SELECT plan FROM gate.approvals WHERE approval_id = $1",
      [ticketOf(first).slice(4)],
    );
    expect(JSON.stringify(stored.rows)).not.toContain(secret);
    const listed = await one.get("/v1/approvals?state=pending&session=s-exact", approver);
    expect(listed.text).not.toContain(secret);
    const shown = await one.get(`/v1/approvals/${ticketOf(first)}`, approver);
    expect(shown.json).toMatchObject({
      plan: { tool: "shell.run", arguments: { command: `ask with ${secret}` } },
      plan_digest: first.plan_digest,
      requester: "dev",
      risk: { score: 45, level: "medium" },
      now: { is_same_policy: true, is_same_plan: true, decision: "require_approval" },
    });
    const stricter = workPolicy({
      "static-deny.cedar": `@id("deny.all")
@message("nothing today")
forbid(principal, action, resource);
`,
    });
    const later = await rig.gate({ policy: () => stricter });
    const changed = await later.get(`/v1/approvals/${ticketOf(first)}`, approver);
    expect(changed.json).toMatchObject({ now: { is_same_policy: false, decision: "deny" } });
    // Approved all the same, the gate decides by the policy of now.
    await approve(first);
    expect(await decide(later, call(`ask with ${secret}`, "s-exact"))).toMatchObject({
      decision: "deny",
      reason_code: "STATIC_DENY",
    });
  });

  it("is nothing of another tenant's", async () => {
    const first = await decide(one, call("ask tenant", "s-tenant"));
    const other = await rig.token({ tenantId: "other", roles: ["approver"], subject: "eve" });
    expect((await approve(first, other)).status).toBe(404);
    expect((await one.get("/v1/approvals", other)).json).toEqual({ approvals: [] });
  });
});

describe("a plan that is not the same any more", () => {
  it("is asked for anew when a script that it runs was changed after the approval", async () => {
    const dir = await mkdtemp(join(tmpdir(), "fabric-operand-"));
    const script = join(dir, "script.sh");
    await writeFile(script, "ask one\n");
    const local = await rig.gate({ policy: () => policy, isOnAgentsMachine: true });
    const body = (): object =>
      ownRequest(
        "shell.run",
        { command: `ask; sh ${script}` },
        { session_id: "s-swap", working_directory: dir },
      );
    const first = await decide(local, body());
    expect(first.decision).toBe("require_approval");
    await approve(first);
    await writeFile(script, "rm -rf everything\n");
    const swapped = await decide(local, body());
    expect(swapped.decision).toBe("require_approval");
    expect(ticketOf(swapped)).not.toBe(ticketOf(first));
    expect(swapped.plan_digest).not.toBe(first.plan_digest);
    expect(await typesOf("s-swap")).toContain("agent.approval.voided");
    // Put back, the voided approval stays void.
    await writeFile(script, "ask one\n");
    expect((await decide(local, body())).decision).toBe("require_approval");
    await rm(dir, { recursive: true });
  });
});
