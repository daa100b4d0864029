import { describe, expect, it } from "vitest";
import { answerLocally } from "./local-profile.ts";

const profile = {
  policy_revision: "policy@2026-01-31.1+0123456789ab",
  digest: "0",
  tools: ["todo.write"],
  expires_at: "2026-01-31T12:01:00.000Z",
};
const atMs = Date.parse("2026-01-31T12:00:30.000Z");
const call = { tool: "todo.write", tool_call_id: "c-1" };

describe("an answer by the local profile", () => {
  it("allows a tool that is listed, and says by what", () => {
    expect(answerLocally(profile, call, atMs)).toMatchObject({
      decision: "allow",
      reason_code: "LOCAL_PROFILE",
      labels: ["local_profile"],
      policy_revision: profile.policy_revision,
    });
  });

  it.each([
    ["a tool that is not listed", profile, { ...call, tool: "shell.run" }, atMs],
    ["a profile past its time", profile, call, Date.parse(profile.expires_at)],
    ["a time that cannot be read", { ...profile, expires_at: "soon" }, call, atMs],
    ["a call without an id", profile, { tool: "todo.write" }, atMs],
  ])("asks the gate for %s", (_, one, request, nowMs) => {
    expect(answerLocally(one, request, nowMs)).toBeNull();
  });
});
