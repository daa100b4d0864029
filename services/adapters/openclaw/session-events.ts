import type { Outcome } from "../../../schemas/generated/types.ts";
import { textBytes, toCount, toShort } from "../../platform/adapter-kit.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toPathText } from "../../platform/listed-paths.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import { sortNested } from "../../platform/payload-fields.ts";
import { toSignal } from "../../platform/plugin-events.ts";
import * as fields from "./payloads.ts";

const previewMaxChars = 256;

export const sessionStart = hookRule(
  "session_start",
  false,
  fields.sessionStartFields,
  ({ metadata }, scene) => {
    const directory = metadata["place/directory"];
    return observe(
      toObservation(
        "agent.session.started",
        {
          source: metadata["event/resumedFrom"] === undefined ? "startup" : "resume",
          model: null,
          working_directory: directory === undefined ? null : toPathText(directory),
        },
        scene,
        { notFrom: ["session"], anchor: { scope: "session", id: scene.place.sessionId } },
      ),
    );
  },
);
export const sessionEnd = hookRule("session_end", false, fields.sessionEndFields, ({ metadata }, scene) =>
  observe(toObservation("agent.session.ended", { reason: toShort(metadata["event/reason"]) }, scene)),
);

/** One run of the client answers one message: it is the turn of its calls. */
export const run = hookRule("prompt", false, fields.runFields, ({ bearing }, scene) => {
  const text = bearing["event/prompt"];
  return {
    observations: [
      toObservation("agent.turn.started", { trigger: "prompt" }, scene, {
        notFrom: ["turn"],
        anchor: { scope: "turn", id: bearing["ctx/runId"] },
      }),
      toObservation(
        "agent.prompt.submitted",
        { prompt_bytes: textBytes(text), preview: toTextPreview(text, previewMaxChars), command_name: null },
        scene,
      ),
    ],
  };
});
export const runEnd = hookRule("turn_end", false, fields.runEndFields, ({ metadata }, scene) => {
  const success = metadata["event/success"];
  return observe(
    toObservation(
      "agent.turn.completed",
      {
        outcome: success === undefined ? "unknown" : success ? "succeeded" : "failed",
        error_kind: toShort(metadata["event/error"]),
        final_message_bytes: null,
        continued_by_hook: false,
        background_tasks: 0,
      },
      scene,
    ),
  );
});

const outcomes: ReadonlyMap<string, Outcome> = new Map<string, Outcome>([
  ["completed", "succeeded"],
  ["error", "failed"],
  ["failed", "failed"],
  ["aborted", "interrupted"],
]);
/** The client counts cached and cache-written tokens beside its input; here they are part of it. */
export const modelCall = hookRule(
  "after_model",
  false,
  fields.modelFields,
  ({ bearing, metadata }, scene) => {
    const used = metadata["message/usage"];
    return observe(
      toObservation(
        "agent.model.completed",
        {
          model: toTextPreview(bearing["event/model"], 128),
          outcome: outcomes.get(metadata["event/outcome"] ?? "") ?? "unknown",
          input_tokens:
            used?.input === undefined
              ? null
              : toCount(used.input + (used.cacheRead ?? 0) + (used.cacheWrite ?? 0)),
          cached_input_tokens: toCount(used?.cacheRead),
          cache_write_tokens: toCount(used?.cacheWrite),
          output_tokens: toCount(used?.output),
          reasoning_tokens: null,
          duration_ms: toCount(metadata["event/durationMs"]),
          cost_micros: null,
          error_kind: toShort(metadata["event/errorCategory"]),
          model_call_id: metadata["event/callId"] ?? null,
        },
        scene,
      ),
      used === undefined
        ? []
        : [
            sortNested(
              "/message/usage",
              used,
              ["input", "output", "cacheRead", "cacheWrite"],
              ["total", "totalTokens", "cost"],
            ),
          ],
    );
  },
);
export const modelRequest = hookRule("before_model", false, fields.modelStartFields, ({ metadata }, scene) =>
  observe(toSignal("model_requested", metadata["event/model"] ?? null, null, scene)),
);
export const compacted = hookRule("after_compaction", false, fields.compactedFields, (_, scene) =>
  observe(toObservation("agent.session.compacted", { trigger: "unknown", summary_bytes: null }, scene)),
);
/** Child agents are told by the names of their sessions, not by the ids that tool calls carry. */
export const spawned = hookRule(
  "subagent_start",
  false,
  fields.spawnedFields,
  ({ bearing, metadata }, scene) => {
    const id = bearing["event/childSessionKey"];
    return observe(
      toObservation(
        "agent.subagent.started",
        { subagent_id: id, subagent_kind: toShort(metadata["event/label"]) },
        scene,
        { anchor: { scope: "subagent", id } },
      ),
    );
  },
);
export const childEnded = hookRule(
  "subagent_end",
  false,
  fields.endedFields,
  ({ bearing, metadata }, scene) =>
    observe(
      toObservation(
        "agent.subagent.stopped",
        {
          subagent_id: bearing["event/targetSessionKey"],
          subagent_kind: toShort(metadata["event/targetKind"]),
          outcome: metadata["event/outcome"] === "ok" ? "succeeded" : "unknown",
          final_message_bytes: null,
        },
        scene,
      ),
    ),
);
export const message = hookRule("message", false, fields.messageFields, ({ metadata }, scene) =>
  observe(toSignal("message_shown", metadata["event/content"] ?? null, null, scene)),
);
