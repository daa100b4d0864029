import { isJsonObject } from "../../platform/payload-fields.ts";
import type { RecordedCall, SessionRecords } from "../../platform/session-records.ts";

/** What the client answers by itself: the tool was not there, or its input did not fit. No hook is asked then. */
const ownRefusal = "<tool_use_error>";

/** Transcripts, a line an entry; children of a session write under its id. Seen with 2.1.328. */
export const records: SessionRecords = {
  where: "~/.claude/projects",
  async *read(home, sinceMs, reader) {
    for (const path of await reader.filesBelow(`${home}/.claude/projects`, /\.jsonl$/, sinceMs)) {
      const open = new Map<string, RecordedCall>();
      for await (const { sessionId, timestamp, message } of reader.objectsOf(path)) {
        if (typeof sessionId !== "string" || !isJsonObject(message) || !Array.isArray(message["content"]))
          continue;
        for (const block of message["content"].filter(isJsonObject)) {
          const { type, id, name, tool_use_id: callId, content, is_error: isError } = block;
          if (type === "tool_use" && typeof id === "string" && typeof name === "string") {
            const atMs = Date.parse(String(timestamp));
            open.set(id, { sessionId, callId: id, tool: name, atMs: Number.isNaN(atMs) ? 0 : atMs });
          }
          const call = type === "tool_result" ? open.get(String(callId)) : undefined;
          if (call === undefined) continue;
          open.delete(call.callId);
          // What a tool prints is no refusal, whatever it reads like.
          const neverRan = isError === true && toText(content).startsWith(ownRefusal);
          if (call.atMs >= sinceMs && !neverRan) yield call;
        }
      }
    }
  },
};

/** A result's text: itself, or that of its first block. */
function toText(content: unknown): string {
  if (typeof content === "string") return content;
  const [first] = Array.isArray(content) ? (content as readonly unknown[]) : [];
  return isJsonObject(first) && typeof first["text"] === "string" ? first["text"] : "";
}
