import { toRecordedCalls } from "../../platform/recorded-rows.ts";
import type { SessionRecords } from "../../platform/session-records.ts";

/** Parts of messages in a database. Seen with 1.18.33. */
export const records: SessionRecords = {
  where: "~/.local/share/opencode/opencode.db",
  async *read(home, sinceMs, reader) {
    const folder = `${home}/.local/share/opencode`;
    for (const path of await reader.filesBelow(folder, /\/opencode\.db$/, 0))
      yield* toRecordedCalls(
        await reader.rowsOf(
          path,
          `SELECT session_id, json_extract(data, '$.callID'), json_extract(data, '$.tool'), time_updated
           FROM part
           WHERE time_updated >= ? AND json_extract(data, '$.type') = 'tool'
             AND json_extract(data, '$.state.status') = 'completed'`,
          [sinceMs],
        ),
      );
  },
};
