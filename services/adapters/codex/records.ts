import { isJsonObject } from "../../platform/payload-fields.ts";
import type { RecordedCall, SessionRecords } from "../../platform/session-records.ts";

const called = new Set(["function_call", "custom_tool_call", "local_shell_call"]);
/** What the client answers by itself: there is no such tool, or its arguments are none. No hook is asked then. */
const ownRefusal = /^(?:unsupported call: [\w.-]{1,128}$|failed to parse function arguments: )/;
const ended = new Set(["function_call_output", "custom_tool_call_output"]);

/** Rollouts, a line an item; the first one names the session. Seen with 0.169.0. */
export const records: SessionRecords = {
  where: "~/.codex/sessions",
  async *read(home, sinceMs, reader) {
    for (const path of await reader.filesBelow(`${home}/.codex/sessions`, /\.jsonl$/, sinceMs)) {
      let sessionId: string | null = null;
      const open = new Map<string, RecordedCall>();
      for await (const { type, timestamp, payload } of reader.objectsOf(path)) {
        if (!isJsonObject(payload)) continue;
        if (type === "session_meta") {
          const id = payload["session_id"] ?? payload["id"];
          sessionId = typeof id === "string" ? id : null;
        }
        const { type: kind, call_id: callId, name } = payload;
        if (sessionId === null || typeof kind !== "string" || typeof callId !== "string") continue;
        if (called.has(kind)) {
          const atMs = Date.parse(String(timestamp));
          const tool = typeof name === "string" ? name : kind;
          open.set(callId, { sessionId, callId, tool, atMs: Number.isNaN(atMs) ? 0 : atMs });
        }
        const call = ended.has(kind) ? open.get(callId) : undefined;
        if (call === undefined) continue;
        open.delete(callId);
        const { output } = payload;
        if (call.atMs >= sinceMs && !(typeof output === "string" && ownRefusal.test(output))) yield call;
      }
    }
  },
};
