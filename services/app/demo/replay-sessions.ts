import { loadRecordedSession } from "./recordings.ts";
import type { World } from "./world.ts";

/** Recorded sessions; the payload count is what the client really sent. */
const sessions = [
  ["claude-code", "cc-final"],
  ["claude-code", "cc-subagent"],
  ["codex", "cx-smoke"],
  ["codex", "as-sub-full"],
] as const;

/** Step: whole sessions of two clients go in as raw hook payloads and come out as rows of one table. */
export async function replaySessions(world: World): Promise<void> {
  world.say("Recorded sessions of real clients, payload by payload, through the gate");
  const sessionIds: string[] = [];
  const sent: { sessionId: string; callId: string }[] = [];
  let payloads = 0;
  let accepted = 0;
  for (const [runtime, name] of sessions) {
    const session = await loadRecordedSession(world.place, runtime, name);
    sessionIds.push(session.sessionId);
    for (const payload of session.payloads) {
      const { status } = await world.postHook(runtime, payload);
      payloads += 1;
      if (status >= 200 && status < 300) accepted += 1;
      const callId = payload["tool_use_id"];
      if (typeof callId === "string" && !sent.some((one) => one.callId === callId)) {
        sent.push({ sessionId: session.sessionId, callId });
      }
    }
    world.show(runtime, `${name}: ${String(session.payloads.length)} payloads`);
  }
  world.claim(
    "the gate takes every payload of both clients",
    accepted === payloads,
    `${String(accepted)} of ${String(payloads)}`,
  );

  const ruled = await world.until(
    () =>
      world.count(
        `SELECT count(*) FROM (SELECT session_id, tool_call_id FROM audit.trail
          WHERE session_id = ANY($1) AND tool_call_id IS NOT NULL
          GROUP BY session_id, tool_call_id
          HAVING count(*) FILTER (WHERE event_type = 'agent.tool.requested') = 1
             AND count(*) FILTER (WHERE event_type IN ('agent.tool.authorized', 'agent.tool.denied')) = 1) calls`,
        [sessionIds],
      ),
    (found) => found === sent.length,
  );
  world.claim(
    "each tool call has one intent and one ruling in the audit trail",
    ruled.held,
    `${String(ruled.value)} of ${String(sent.length)} calls`,
  );
  const { rows } = await world.sql.query<{ type: string; events: number }>(
    "SELECT event_type AS type, count(*)::int AS events FROM audit.trail WHERE session_id = ANY($1) GROUP BY event_type ORDER BY 2 DESC, 1",
    [sessionIds],
  );
  for (const row of rows.slice(0, 6)) world.show("", `${String(row.events).padStart(3)} × ${row.type}`);
}
