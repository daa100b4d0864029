import type { RecordedCall } from "./session-records.ts";

/** Rows of session, call, tool and time (UTC milliseconds) as calls; a row without the ids is none. */
export function toRecordedCalls(rows: readonly (readonly unknown[])[]): readonly RecordedCall[] {
  return rows.flatMap(([sessionId, callId, tool, atMs]) =>
    typeof sessionId === "string" && typeof callId === "string"
      ? [{ sessionId, callId, tool: typeof tool === "string" ? tool : "?", atMs: Number(atMs) }]
      : [],
  );
}
