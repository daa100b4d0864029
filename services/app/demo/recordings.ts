import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Place } from "../place.ts";

/** One recorded session of a real client: raw hook payloads in their order. */
export interface RecordedSession {
  readonly runtime: string;
  readonly name: string;
  readonly sessionId: string;
  readonly payloads: readonly Record<string, unknown>[];
}

/**
 * Loads a recorded session under a session id of its own, so that the story can be told again on the same stack;
 * everything else is as the client sent it.
 */
export async function loadRecordedSession(
  place: Place,
  runtime: string,
  name: string,
): Promise<RecordedSession> {
  const path = join(place.packageDir, "test", "corpus", "hooks", runtime, "sessions", `${name}.jsonl`);
  const text = await readFile(path, "utf8");
  const first = JSON.parse(text.slice(0, text.indexOf("\n"))) as { session_id: string };
  const sessionId = randomUUID();
  const payloads = text
    .replaceAll(first.session_id, sessionId)
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { runtime, name, sessionId, payloads };
}
