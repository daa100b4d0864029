import { toRecordedCalls } from "../../platform/recorded-rows.ts";
import type { SessionRecords } from "../../platform/session-records.ts";

/** A database of each agent; what the client has packed (`event_zstd`) is older and not read. Seen with 2026.9.6. */
export const records: SessionRecords = {
  where: "~/.openclaw/agents",
  async *read(home, sinceMs, reader) {
    // The second is where a state folder of its own lies, if it lies in the home.
    for (const folder of [`${home}/.openclaw/agents`, `${home}/state/agents`])
      for (const path of await reader.filesBelow(folder, /\/openclaw-agent\.sqlite$/, 0))
        yield* toRecordedCalls(
          await reader.rowsOf(
            path,
            `SELECT session_id, json_extract(event_json, '$.message.toolCallId'),
               json_extract(event_json, '$.message.toolName'), created_at
             FROM transcript_events
             WHERE created_at >= ? AND event_json IS NOT NULL
               AND json_extract(event_json, '$.message.role') = 'toolResult'`,
            [sinceMs],
          ),
        );
  },
};
