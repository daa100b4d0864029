import { loadRecordedSession } from "./recordings.ts";
import type { World } from "./world.ts";

interface RulingRow {
  readonly decision: string;
  readonly reason_code: string;
  readonly matched_rules: string[];
  readonly capability_id: string | null;
}

/** Step: one call is allowed, one real call is denied because nobody listed its tool, one because a rule says so. */
export async function judgeCalls(world: World): Promise<void> {
  world.say("What the gate answers, and why");
  const harmless = await loadRecordedSession(world.place, "codex", "cx-smoke");
  const foreign = await loadRecordedSession(world.place, "claude-code", "cc-mcp_call");
  const allowed = firstCall(harmless.payloads, () => true);
  const unlisted = firstCall(foreign.payloads, (payload) => String(payload["tool_name"]).startsWith("mcp__"));
  const dangerous = {
    ...allowed,
    tool_use_id: "call_demo_force_push",
    tool_input: { command: "git push --force origin main" },
  };

  await judge(world, "codex", allowed, "allow", "an ordinary call is allowed and gets a capability");
  await judge(
    world,
    "claude-code",
    unlisted,
    "require_approval",
    "a recorded call of an unlisted MCP tool is denied until a person agrees",
  );
  await judge(
    world,
    "codex",
    dangerous,
    "deny",
    "the recorded call with another command, `git push --force`, is denied",
  );
}

async function judge(
  world: World,
  runtime: string,
  payload: Record<string, unknown>,
  expected: "allow" | "deny" | "require_approval",
  claim: string,
): Promise<void> {
  const answer = await world.postHook(runtime, payload);
  const found = await world.until(
    () => ruling(world, String(payload["session_id"]), String(payload["tool_use_id"])),
    (row) => row !== undefined,
  );
  const row = found.value;
  world.show("call", `${String(payload["tool_name"])} ${JSON.stringify(payload["tool_input"]).slice(0, 90)}`);
  world.show("reply", `${String(answer.status)} ${JSON.stringify(answer.body).slice(0, 200)}`);
  world.show("because", `${row?.reason_code ?? "?"} · rules: ${row?.matched_rules.join(", ") ?? "-"}`);
  const right =
    row?.decision === expected &&
    (expected === "allow" ? !saysNo(answer.body) && row.capability_id !== null : saysNo(answer.body));
  world.claim(
    claim,
    right,
    row === undefined ? "no ruling was recorded" : `${row.decision} ${row.reason_code}`,
  );
}

async function ruling(world: World, sessionId: string, callId: string): Promise<RulingRow | undefined> {
  const { rows } = await world.sql.query<RulingRow>(
    `SELECT decision, reason_code, matched_rules, capability_id FROM audit.trail
     WHERE session_id = $1 AND tool_call_id = $2 AND event_type IN ('agent.tool.authorized', 'agent.tool.denied')`,
    [sessionId, callId],
  );
  return rows[0];
}

/** Whether a reply blocks the call, in the form that both clients honour. */
function saysNo(body: unknown): boolean {
  return JSON.stringify(body ?? null).includes('"deny"');
}

function firstCall(
  payloads: readonly Record<string, unknown>[],
  wanted: (payload: Record<string, unknown>) => boolean,
): Record<string, unknown> {
  // A payload that asks has a call id and no result yet.
  const found = payloads.find(
    (one) =>
      typeof one["tool_use_id"] === "string" && !("tool_response" in one) && !("error" in one) && wanted(one),
  );
  if (found === undefined) throw new Error("the recording has no such call");
  return found;
}
