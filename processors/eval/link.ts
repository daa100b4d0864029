import { hash } from "node:crypto";
import type { Envelope } from "../../schemas/envelope.ts";
import { episodeIdOf } from "./episode-id.ts";
import { clean, cut } from "./words.ts";

/** Something that an episode has in common with each episode that it is related to. Names are those of the columns. */
export interface Link {
  readonly tenant_id: string;
  readonly episode_id: string;
  readonly link: string;
  readonly first_seen_at: string;
}

/** An index row of Postgres holds 2,700 bytes; this fits whatever the script. */
const linkMaxChars = 600;

/**
 * What an event ties its episode to: its session, the session of a child agent, the task, and the folder on that day
 * (UTC). That two episodes have the same goal is seen when the goal is known, from the ledger.
 */
export function toLinks(event: Envelope): readonly Link[] {
  const summary = event.redacted_summary;
  const { session_id, task_id } = event.execution;
  const recordedAt = new Date(event.recorded_at).toISOString();
  const folder = "working_directory" in summary ? summary.working_directory : null;
  const child = "subagent_id" in summary ? summary.subagent_id : null;
  return [
    ...(session_id === null ? [] : [["session", event.runtime.kind, session_id]]),
    // A child agent may report under a session of its own, which is named like the agent.
    ...(child === null ? [] : [["session", event.runtime.kind, child]]),
    ...(task_id === null ? [] : [["task", task_id]]),
    ...(folder === null ? [] : [["folder", recordedAt.slice(0, 10), digestOf(event.tenant_id, folder)]]),
  ].map((parts) => ({
    tenant_id: clean(event.tenant_id),
    episode_id: episodeIdOf(event.tenant_id, event.correlation_id),
    link: cut(clean(parts.join("\u001F")), linkMaxChars),
    first_seen_at: recordedAt,
  }));
}

/** Names no folder, and is the same for the same one: an erasure need not look for it. */
function digestOf(tenantId: string, folder: string): string {
  return hash("sha256", `${clean(tenantId)}\u001F${clean(folder)}`, "hex");
}
