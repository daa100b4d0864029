import { randomUUID } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { replayRecording } from "../harness/app-server-recordings.ts";
import { runToEnd } from "../harness/gated-forms.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { claudeCall, claudeResult, codexCall } from "../harness/hook-payloads.ts";
import { workPolicy } from "../harness/work-policy.ts";

type Payload = Readonly<Record<string, unknown>>;

let rig: GateRig;
let gate: RunningGate;
/** Decides by the bundle that ships, which knows what of an input is the model's own reason. */
let shipped: RunningGate;
let folder: string;
beforeAll(async () => {
  rig = await createGateRig();
  const policy = workPolicy();
  gate = await rig.gate({ policy: () => policy });
  shipped = await rig.gate();
  folder = mkdtempSync(join(tmpdir(), "two-adapters-"));
  const shim = new URL("../../services/install/shim/hook.sh", import.meta.url);
  copyFileSync(fileURLToPath(shim), join(folder, "hook.sh"));
  writeFileSync(join(folder, "token"), `${await rig.token()}\n`);
  writeFileSync(join(folder, "deadlines"), "5 3 0\n");
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await rig.close();
});

/** What the ledger of a session holds: how often each type, and how many decisions. */
async function ledgerOf(session: string): Promise<Readonly<Record<string, number>>> {
  const ledger: Record<string, number> = {};
  for (const { type, execution } of await rig.events())
    if (execution.session_id === session) ledger[type] = (ledger[type] ?? 0) + 1;
  const { rows } = await rig.admin.query<{ n: number }>(
    "SELECT count(*)::integer AS n FROM gate.decisions WHERE request ->> 'session_id' = $1",
    [session],
  );
  return { ...ledger, decisions: rows[0]?.n ?? 0 };
}
const tell = async (runtime: string, payload: Payload, at = gate): Promise<unknown> =>
  (await at.post(`/v1/hooks/${runtime}`, payload)).json;

describe("Claude Code with its command hook and its HTTP hook at once", () => {
  /** Both forms, in the same moment, as the client starts them. */
  const both = (mode: "gate" | "observe", payload: Payload): Promise<readonly [string, unknown]> => {
    writeFileSync(join(folder, "url"), `${gate.url}/v1/hooks/claude-code\n`);
    // The one gets the same document with a line's end.
    const input = `${JSON.stringify(payload)}\n`;
    return Promise.all([
      runToEnd(["/bin/sh", join(folder, "hook.sh"), mode, "hash"], input).then(({ code, stdout, stderr }) =>
        `${String(code)} ${stdout}${stderr}`.trim(),
      ),
      tell("claude-code", payload),
    ]);
  };

  it("has one decision, one right and one result of a call", async () => {
    const session_id = `s-${randomUUID()}`;
    const call = claudeCall("echo hi", { session_id });
    expect(await both("gate", call)).toEqual(["0", {}]);
    await both("observe", claudeResult({ ...call, hook_event_name: "PostToolUse" }));
    expect(await ledgerOf(session_id)).toEqual({
      "agent.tool.requested": 1,
      "agent.tool.authorized": 1,
      "agent.capability.issued": 1,
      "agent.tool.completed": 1,
      decisions: 1,
    });
  });

  it("is refused in both, by one decision, and waits by one ticket", async () => {
    for (const [command, told] of [
      ["git push --force", "never, whoever asks"],
      ["ask me", "APPROVAL_REQUIRED"],
    ] as const) {
      const session_id = `s-${randomUUID()}`;
      const [shell, http] = await both("gate", claudeCall(command, { session_id }));
      expect(shell).toContain(told);
      expect(JSON.stringify(http)).toContain(told);
      const { decisions, "agent.approval.requested": tickets = 0 } = await ledgerOf(session_id);
      expect([command, decisions, tickets]).toEqual([command, 1, command === "ask me" ? 1 : 0]);
    }
  });
});

describe("Codex with its hooks and the App Server's proxy at once", () => {
  /** A recorded command with ids and text of its own, as the proxy asks and tells of it. */
  function watched(
    command: string,
    reason?: string,
  ): { call: Payload; result: Payload; asked: Payload; ended: Payload } {
    const [session, callId] = [`t-${randomUUID()}`, `call_${randomUUID()}`];
    const told = replayRecording("a_cmd_accept").map(({ payload }) => payload);
    const find = (method: string): Payload =>
      told.find((one) => one["method"] === method && one["call_id"] !== undefined) ?? {};
    const question = find("item/commandExecution/requestApproval");
    const text = JSON.stringify([question, find("item/completed")])
      .replaceAll(String(question["session_id"]), session)
      .replaceAll(String(question["call_id"]), callId)
      .replaceAll("echo hi > out.txt; echo done-bash", command);
    const [{ params, ...rest_ } = {}, ended = {}] = JSON.parse(text) as Payload[];
    const asked = { ...rest_, params: { ...(params as Payload), reason } };
    const rest = { session_id: session, turn_id: ended["turn_id"], tool_use_id: callId, cwd: "/workspace" };
    const call = codexCall(command, rest);
    return {
      call,
      result: { ...call, hook_event_name: "PostToolUse", tool_response: "done-bash\n" },
      asked,
      ended,
    };
  }

  it("has one decision on a call, one result, and no alarm", async () => {
    for (const isHookFirst of [true, false]) {
      const { call, result, asked, ended } = watched("ls -l", "need it");
      const question = await tell("codex", call, shipped).then(() =>
        tell("codex-app-server", asked, shipped),
      );
      expect(question).toMatchObject({ order: "yes" });
      if (isHookFirst) await tell("codex", result, shipped);
      await tell("codex-app-server", ended, shipped);
      if (!isHookFirst) await tell("codex", result, shipped);
      expect(await ledgerOf(String(call["session_id"]))).toEqual({
        "agent.tool.requested": 1,
        "agent.tool.authorized": 1,
        "agent.capability.issued": 1,
        "agent.tool.completed": 1,
        decisions: 1,
      });
    }
  });

  it("says one no, and passes by one approval", async () => {
    const never = watched("git push --force");
    expect(JSON.stringify(await tell("codex", never.call))).toContain("never, whoever asks");
    expect(await tell("codex-app-server", never.asked)).toMatchObject({ order: "no" });
    expect(await ledgerOf(String(never.call["session_id"]))).toMatchObject({ decisions: 1 });

    const held = watched("ask me");
    const session = String(held.call["session_id"]);
    expect(JSON.stringify(await tell("codex", held.call))).toContain("APPROVAL_REQUIRED");
    const { rows } = await rig.admin.query<{ id: string; digest: string }>(
      "SELECT 'apr_' || a.approval_id AS id, a.plan_digest AS digest FROM gate.approvals AS a JOIN gate.sessions AS s USING (session_key) WHERE s.session_id = $1",
      [session],
    );
    expect(rows).toHaveLength(1);
    const approver = await rig.token({ roles: ["approver"], subject: "ada" });
    await gate.post(
      `/v1/approvals/${rows[0]?.id ?? ""}/approve`,
      { plan_digest: rows[0]?.digest, note: "looked at it" },
      approver,
    );
    expect(await tell("codex", held.call)).toEqual({});
    expect(await tell("codex-app-server", held.asked)).toMatchObject({ order: "yes" });
    await tell("codex-app-server", held.ended);
    await tell("codex", held.result);
    expect(await ledgerOf(session)).toMatchObject({
      "agent.approval.requested": 1,
      "agent.approval.consumed": 1,
      "agent.capability.issued": 1,
      "agent.tool.completed": 1,
    });
  });

  it("is told a second time of the same call with another input: that one is compared all the same", async () => {
    const { call, result, asked, ended } = watched("echo hi > out.txt");
    await tell("codex", call);
    await tell("codex-app-server", asked);
    await tell("codex-app-server", ended);
    await tell("codex", { ...result, tool_input: { command: "echo evil > out.txt" } });
    expect(await ledgerOf(String(call["session_id"]))).toMatchObject({
      "agent.tool.completed": 2,
      "agent.plan.diverged": 1,
    });
  });

  it("keeps what the proxy alone sees: a command that ran again outside of the sandbox", async () => {
    const { call, result, asked, ended } = watched("echo hi > out.txt");
    await tell("codex", call);
    await tell("codex-app-server", asked);
    await tell("codex", result);
    await tell("codex-app-server", { ...ended, ruled: "accepted", is_retried: true });
    expect(await ledgerOf(String(call["session_id"]))).toMatchObject({ "agent.effect.ungated": 1 });
  });
});
