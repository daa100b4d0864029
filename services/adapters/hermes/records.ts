import { toRecordedCalls } from "../../platform/recorded-rows.ts";
import type { SessionRecords } from "../../platform/session-records.ts";

/** Messages in a database, dated in seconds. Seen with 0.19.0. */
export const records: SessionRecords = {
  where: "~/.hermes/state.db",
  async *read(home, sinceMs, reader) {
    for (const path of await reader.filesBelow(`${home}/.hermes`, /\/\.hermes\/state\.db$/, 0))
      yield* toRecordedCalls(
        await reader.rowsOf(
          path,
          `SELECT session_id, tool_call_id, tool_name, timestamp * 1000 FROM messages
           WHERE role = 'tool' AND timestamp * 1000 >= ?`,
          [sinceMs],
        ),
      );
  },
};
