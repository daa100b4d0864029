import { randomUUID } from "node:crypto";
import { loadRecordedSession } from "./recordings.ts";
import { readTopicRecords } from "../topic-records.ts";
import type { World } from "./world.ts";

/** How many copies of one call arrive at once. */
const copies = 16;

/** Step: the same call sixteen times at once is one decision; the same record twice on a topic is one row. */
export async function repeatDelivery(world: World): Promise<void> {
  world.say("The same thing twice");
  const session = await loadRecordedSession(world.place, "claude-code", "cc-parallel");
  const payload = session.payloads.find((one) => typeof one["tool_use_id"] === "string") ?? {};
  const answers = await Promise.all(
    Array.from({ length: copies }, () => world.postHook(session.runtime, payload)),
  );
  const bodies = [...new Set(answers.map((answer) => JSON.stringify(answer.body)))];
  const distinct = bodies.length;
  const decisions = await world.count(
    `SELECT count(*) FROM gate.decisions d JOIN gate.sessions s USING (session_key) WHERE s.session_id = $1`,
    [session.sessionId],
  );
  world.claim(
    `one call that arrives ${String(copies)} times at once is one decision, and all get its answer`,
    decisions === 1 && distinct === 1,
    `${String(decisions)} decision, ${String(distinct)} distinct answer${distinct === 1 ? "" : `: ${bodies.join(" | ").slice(0, 400)}`}`,
  );

  // The outbox is at least once: after a crash the relay publishes again. Here the second copy is put there by hand.
  const request = {
    runtime: "own-harness",
    session_id: `demo-${randomUUID()}`,
    tool: "file.read",
    input: { file_path: "README.md" },
  };
  const { body } = await world.decide({ ...request, tool_call_id: "call-1" });
  const decisionId = (body as { decision_id?: string } | null)?.decision_id ?? "";
  const eventRows = () =>
    world.count("SELECT count(*) FROM audit.trail WHERE session_id = $1", [request.session_id]);
  await world.until(eventRows, (found) => found >= 2);
  const before = await eventRows();
  const { rows } = await world.sql.query<{
    event_id: string;
    type: string;
    tenant_id: string;
    correlation_id: string;
  }>(
    "SELECT 'evt_' || event_id AS event_id, event_type AS type, tenant_id, correlation_id FROM audit.trail WHERE session_id = $1",
    [request.session_id],
  );
  const republished = await republish(world, rows);
  const marker = await world.decide({ ...request, tool_call_id: "call-2" });
  const markerId = (marker.body as { decision_id?: string } | null)?.decision_id ?? "";
  // Behind the copies in the same partitions: once it is there, the copies have been seen.
  await world.until(
    () =>
      world.count("SELECT count(*) FROM audit.trail WHERE session_id = $1 AND tool_call_id = 'call-2'", [
        request.session_id,
      ]),
    (found) => found >= 2,
  );
  const after = await world.count(
    "SELECT count(*) FROM audit.trail WHERE session_id = $1 AND tool_call_id = 'call-1'",
    [request.session_id],
  );
  world.claim(
    "a record that is published twice is counted once",
    republished === before && after === before && decisionId !== "" && markerId !== decisionId,
    `${String(republished)} records published again, ${String(before)} rows before, ${String(after)} after`,
  );
}

/** Puts the events of a session into the outbox once more, under the same ids, as a relay does that died too early. */
async function republish(
  world: World,
  events: readonly { event_id: string; type: string; tenant_id: string; correlation_id: string }[],
): Promise<number> {
  const found = await readTopicRecords(
    world.config,
    [...new Set(events.map((event) => event.type))],
    new Set(events.map((event) => event.event_id)),
  );
  await world.sql.query("SELECT outbox.append($1::uuid[], $2, $3, $4, $5, $6::jsonb[])", [
    found.map((one) => one.eventId.slice("evt_".length)),
    found.map((one) => one.type),
    found.map((one) => one.key),
    found.map((one) => one.tenantId),
    found.map((one) => one.value),
    found.map((one) => JSON.stringify(one.headers)),
  ]);
  return found.length;
}
