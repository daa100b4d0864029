import { readFileSync, readdirSync } from "node:fs";
import type { Translation } from "../../schemas/adapter.ts";
import { codexAppServer } from "../../services/adapters/codex/app-server/app-server.ts";
import { createThreadBook } from "../../services/adapters/codex/app-server/thread-book.ts";
import type { WireMessage, WireObject } from "../../services/adapters/codex/app-server/wire-message.ts";
import { readMessage } from "../../services/adapters/codex/app-server/wire-message.ts";
import { projectDir } from "./stack.ts";

const folder = `${projectDir}/test/corpus/hooks/codex-app-server`;

/** Names of all recorded runs of the real server. */
export const recordings: readonly string[] = readdirSync(folder)
  .filter((name) => name.endsWith(".jsonl"))
  .map((name) => name.slice(0, -".jsonl".length))
  .sort();

/** One line of the wire: who sent it, and what. */
export interface RecordedLine {
  readonly from: "client" | "server";
  readonly line: string;
}
/** What went over the wire, in order. */
export const readRecording = (name: string): readonly RecordedLine[] =>
  readFileSync(`${folder}/${name}.jsonl`, "utf8")
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text) as { dir: string; msg?: unknown; raw?: string })
    .filter(({ dir }) => dir === "c2s" || dir === "s2c")
    .map(({ dir, msg, raw }) => ({
      from: dir === "c2s" ? "client" : "server",
      line: raw ?? JSON.stringify(msg),
    }));

/** A message of a recording that the gate is told of. */
export interface Told {
  readonly message: WireMessage;
  readonly payload: WireObject;
  readonly translation: Translation;
}

/** What the gate would have been told of a recording, with the answers that the recorded client gave. */
export const replayRecording = (name: string): readonly Told[] => {
  const book = createThreadBook();
  const questions = new Map<string, WireMessage>();
  const told: Told[] = [];
  for (const { from, line } of readRecording(name)) {
    const message = readMessage(line);
    if (message === null) continue;
    if (from === "client") {
      const asked = message.kind === "reply" ? questions.get(JSON.stringify(message.id)) : undefined;
      if (asked !== undefined && message.kind === "reply") {
        const { decision, action, success } = (message.result ?? {}) as Readonly<Record<string, unknown>>;
        const isYes =
          decision === "accept" || decision === "acceptForSession" || action === "accept" || success === true;
        book.rule(asked, isYes ? "accepted" : "declined");
      }
      continue;
    }
    book.note(message, "server");
    if (message.kind === "request") questions.set(JSON.stringify(message.id), message);
    const payload = book.toPayload(message);
    if (payload === null) continue;
    const text = JSON.stringify(payload);
    const translation = codexAppServer.translate(JSON.parse(text), Buffer.byteLength(text));
    told.push({ message, payload, translation });
  }
  return told;
};

/** One line for each question and event, for a person to read and for comparing. */
export const toLines = (told: readonly Told[]): readonly string[] =>
  told.flatMap(({ payload, translation }) => {
    const method = String(payload["method"]);
    if (translation.kind === "unrecognized")
      return [`${method} !! ${JSON.stringify(translation.draft.redacted_summary)}`];
    const asks = translation.kind === "gated" ? [`${method} ? ${translation.request.tool}`] : [];
    const events = translation.observations.map(({ draft }) => {
      const summary = draft.redacted_summary as unknown as Record<string, unknown>;
      const detail = ["outcome", "evidence", "refused_by", "signal", "model_call_id", "subagent_id"]
        .flatMap((key) =>
          typeof summary[key] === "string" ? [String(summary[key]).replace(/^[0-9a-f-]{36}/, "…")] : [],
        )
        .join(" ");
      return `${method} > ${[draft.type, draft.subject?.tool ?? "", detail].filter((part) => part !== "").join(" ")}`;
    });
    return [...asks, ...events];
  });
