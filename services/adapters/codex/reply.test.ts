import { describe, expect, it } from "vitest";
import type { GateAnswer } from "../../../schemas/gate.ts";
import { decisions } from "../../../schemas/gate.ts";
import { rules } from "./events.ts";
import { toRefusal, toReply } from "./reply.ts";
import { translate } from "./translate.ts";

const call = {
  session_id: "s1",
  turn_id: "t1",
  cwd: "/workspace",
  tool_name: "Bash",
  tool_input: { command: "true" },
  tool_use_id: "c1",
};
const answer: GateAnswer = {
  decision: "deny",
  decision_id: "dec_1",
  reason_code: "STATIC_DENY",
  message: "",
  policy_revision: "policy@2026-11-30.1",
  plan_digest: null,
  correlation_id: "cor_1",
  constraints: {},
  matched_rules: [],
  labels: [],
  repeated: false,
};
const isNo = (text: string): boolean => /"(permissionDecision|behavior)":"deny"/.test(text);

describe.each(["PreToolUse", "PermissionRequest"])("the reply to %s", (name) => {
  const asked = translate({ ...call, hook_event_name: name }, 1);

  it.each(decisions.filter((one) => one !== "allow"))("lets nothing go on as asked after %s", (decision) => {
    // Without a changed input a `modify` is as good as a no.
    const reply = toReply(asked, { ...answer, decision });
    expect(isNo(reply.stdout)).toBe(true);
    expect(reply.exitCode).toBe(0);
    expect(JSON.parse(reply.stdout)).toEqual(reply.body);
    expect(reply.stdout).toMatch(/"(permissionDecisionReason|message)":"STATIC_DENY: /);
  });

  it("holds no opinion after an allow: the user is asked as if no hook were there", () => {
    const reply = toReply(asked, { ...answer, decision: "allow" });
    expect(reply).toEqual({ status: 200, body: {}, exitCode: 0, stdout: "", stderr: "" });
  });

  it("is a no when there is no answer, or no reason", () => {
    for (const reply of [toReply(asked, null), toRefusal(name, ""), toRefusal(name, " \n")])
      expect(
        isNo(JSON.stringify(reply.body)) && (reply.exitCode === 2 ? reply.stderr.trim() : reply.stdout),
      ).toMatch(/./);
  });
});

describe("a refusal", () => {
  it("of an observing event says nothing, for its own blocking form would do harm", () => {
    for (const [name, rule] of rules)
      if (!rule.gating)
        expect(toRefusal(name, "GATE_UNREACHABLE: away"), name).toMatchObject({
          body: {},
          exitCode: 0,
          stdout: "",
        });
  });

  it.each([null, "PreTeleport", "__proto__"])("of the event %s, which nobody knows, blocks", (name) => {
    expect(toRefusal(name, "X: y")).toMatchObject({
      body: { decision: "block", reason: "X: y" },
      exitCode: 2,
      stderr: "X: y\n",
    });
  });
});
