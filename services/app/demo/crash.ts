import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { listServiceProcesses, startServiceProcess, stopServiceProcess } from "../service-processes.ts";
import { readTopicRecords } from "../topic-records.ts";
import type { World } from "./world.ts";

/** Enough calls that the kills fall into the middle of the work, few enough to watch. */
const calls = 3_000;
const sessions = 60;
/** Calls on their way at once. */
const parallel = 16;
/** SIGKILL to the relay and to the processor, this often each. */
const kills = 3;

/** Step: relay and processor are killed in the middle of a load, several times; the ledger is compared at the end. */
export async function crashInTheMiddle(world: World): Promise<void> {
  world.say(
    `SIGKILL in the middle of ${String(calls)} decisions: relay and processor, ${String(kills)} times each`,
  );
  const run = `demo-${randomUUID()}`;
  /** The generator's own log: the calls that the gate allowed, and how many it refused for which reason. */
  const ledger = new Set<string>();
  const refused = new Map<string, number>();
  let next = 0;
  let loading = true;
  async function worker(): Promise<void> {
    for (let index = next++; index < calls; index = next++) {
      const callId = `${run}-${String(index)}`;
      const { body } = await world.decide({
        runtime: "own-harness",
        session_id: `${run}-s${String(index % sessions)}`,
        tool_call_id: callId,
        tool: "file.read",
        input: { file_path: `src/file-${String(index)}.ts` },
      });
      const { decision, reason_code: reason = "no answer" } = body as {
        decision?: string;
        reason_code?: string;
      };
      if (decision === "allow") ledger.add(callId);
      else refused.set(reason, (refused.get(reason) ?? 0) + 1);
    }
  }
  const load = Promise.all(Array.from({ length: parallel }, worker)).finally(() => (loading = false));
  // Its failure is met where it is awaited; until then it must not end the process.
  load.catch(() => undefined);
  const killed: string[] = [];
  for (let round = 0; round < kills; round += 1) {
    for (const name of ["relay", "processor-audit"]) {
      // Spread over the load: a kill when nothing moves proves nothing.
      const goal = (calls * (round * 2 + killed.length - round * 2 + 1)) / (kills * 2 + 1);
      while (loading && ledger.size < goal) await wait(5);
      killed.push(`${name} at ${String(ledger.size)}`);
      await killAndRestart(world, name);
    }
  }
  await load;
  world.show("killed", killed.join(" · "));
  world.show(
    "answers",
    [`${String(ledger.size)} allowed`, ...[...refused].map(([reason, n]) => `${String(n)} ${reason}`)].join(
      ", ",
    ),
  );

  const audited = () =>
    world.count(
      "SELECT count(DISTINCT tool_call_id) FROM audit.trail WHERE event_type = 'agent.tool.authorized' AND session_id LIKE $1",
      [`${run}-s%`],
    );
  const { value, held } = await world.until(audited, (found) => found >= ledger.size, 60_000);
  world.claim(
    "nothing is lost: each allowed call is in the audit trail",
    held,
    `${String(value)} of ${String(ledger.size)}`,
  );
  const doubled = await world.count(
    `SELECT count(*) FROM (SELECT tool_call_id, event_type FROM audit.trail WHERE session_id LIKE $1
       GROUP BY tool_call_id, event_type HAVING count(*) > 1) twice`,
    [`${run}-s%`],
  );
  world.claim("nothing is doubled in the projection", doubled === 0, `${String(doubled)} doubled`);
  const unanswered = await world.count(
    `SELECT count(*) FROM audit.trail WHERE session_id LIKE $1 AND event_type = 'agent.tool.authorized' AND NOT tool_call_id = ANY($2)`,
    [`${run}-s%`, [...ledger]],
  );
  world.claim(
    "nothing is in the trail as allowed that the caller was not told",
    unanswered === 0,
    `${String(unanswered)} extra`,
  );
  const left = await world.until(
    () => world.count("SELECT count(*) FROM outbox.events"),
    (found) => found === 0,
  );
  world.claim("the outbox is empty again", left.held, `${String(left.value)} rows`);

  const records = await readTopicRecords(world.config, ["agent.tool.authorized"]);
  const ids = await world.sql.query<{ event_id: string }>(
    "SELECT 'evt_' || event_id AS event_id FROM audit.trail WHERE session_id LIKE $1 AND event_type = 'agent.tool.authorized'",
    [`${run}-s%`],
  );
  const wanted = new Set(ids.rows.map((row) => row.event_id));
  const onTopic = records.filter((record) => wanted.has(record.eventId)).length;
  world.show(
    "topic",
    `${String(onTopic)} records for ${String(wanted.size)} events; what was published twice, the inbox dropped`,
  );
}

async function killAndRestart(world: World, name: string): Promise<void> {
  const found = (await listServiceProcesses(world.files)).find((one) => one.name === name);
  if (found !== undefined) process.kill(found.pid, "SIGKILL");
  await stopServiceProcess(world.files, name);
  await startServiceProcess(world.files, name, found?.roles ?? []);
}
