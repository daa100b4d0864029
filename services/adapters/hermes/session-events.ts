import { textBytes, toCount, toMessageBytes, toShort } from "../../platform/adapter-kit.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toPathText } from "../../platform/listed-paths.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import { sortNested } from "../../platform/payload-fields.ts";
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
          source: metadata["payload/reason"] === undefined ? "startup" : "clear",
          model: toShort(metadata["payload/model"]),
          working_directory: directory === undefined ? null : toPathText(directory),
        },
        scene,
        { notFrom: ["turn", "session"], anchor: { scope: "session", id: scene.place.sessionId } },
      ),
    );
  },
);
export const sessionEnd = hookRule("session_end", false, fields.sessionEndFields, ({ metadata }, scene) =>
  observe(toObservation("agent.session.ended", { reason: toShort(metadata["payload/reason"]) }, scene)),
);
/** Named for a session in this client; it comes at the end of each turn. */
export const turnEnd = hookRule("turn_end", false, fields.turnEndFields, ({ metadata }, scene) => {
  const { "payload/completed": completed, "payload/interrupted": interrupted } = metadata;
  return observe(
    toObservation(
      "agent.turn.completed",
      {
        outcome:
          interrupted === true
            ? "interrupted"
            : completed === undefined
              ? "unknown"
              : completed
                ? "succeeded"
                : "failed",
        error_kind: null,
        final_message_bytes: null,
        continued_by_hook: false,
        background_tasks: 0,
      },
      scene,
    ),
  );
});
export const prompt = hookRule("prompt", false, fields.promptFields, ({ bearing }, scene) => {
  const text = bearing["payload/user_message"];
  return {
    observations: [
      toObservation("agent.turn.started", { trigger: "prompt" }, scene, {
        notFrom: ["turn"],
        anchor: { scope: "turn", id: bearing["place/turn"] },
      }),
      toObservation(
        "agent.prompt.submitted",
        { prompt_bytes: textBytes(text), preview: toTextPreview(text, previewMaxChars), command_name: null },
        scene,
      ),
    ],
  };
});

/** The client counts the whole prompt beside its uncached part; reasoning is part of its output. */
export const modelCall = hookRule(
  "after_model",
  false,
  fields.modelFields,
  ({ bearing, metadata }, scene) => {
    const used = metadata["payload/usage"] ?? undefined;
    const error = metadata["payload/error"];
    const seconds = metadata["payload/api_duration"];
    return observe(
      toObservation(
        "agent.model.completed",
        {
          model: toTextPreview(bearing["payload/model"], 128),
          outcome: error === undefined ? "succeeded" : "failed",
          input_tokens: toCount(used?.prompt_tokens),
          cached_input_tokens: toCount(used?.cache_read_tokens),
          cache_write_tokens: toCount(used?.cache_write_tokens),
          output_tokens: toCount(used?.output_tokens),
          reasoning_tokens: toCount(used?.reasoning_tokens),
          duration_ms: toCount(seconds === undefined ? undefined : Math.round(seconds * 1000)),
          cost_micros: null,
          error_kind: toShort(error?.type),
          model_call_id: metadata["payload/api_request_id"] ?? null,
        },
        scene,
      ),
      [
        ...(used === undefined
          ? []
          : [
              sortNested(
                "/payload/usage",
                used,
                [
                  ...["prompt_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"],
                  "reasoning_tokens",
                ],
                ["input_tokens", "request_count", "total_tokens"],
              ),
            ]),
        ...(error === undefined ? [] : [sortNested("/payload/error", error, ["type"], ["message"])]),
      ],
    );
  },
);
/** A child agent has a session of its own; this is its parent's record. */
export const childStart = hookRule(
  "subagent_start",
  false,
  fields.childStartFields,
  ({ bearing, metadata }, scene) => {
    const id = bearing["payload/child_session_id"];
    return observe(
      toObservation(
        "agent.subagent.started",
        { subagent_id: id, subagent_kind: toShort(metadata["payload/child_role"]) },
        scene,
        { anchor: { scope: "subagent", id } },
      ),
    );
  },
);
export const childStop = hookRule(
  "subagent_end",
  false,
  fields.childStopFields,
  ({ bearing, metadata }, scene) =>
    observe(
      toObservation(
        "agent.subagent.stopped",
        {
          subagent_id: bearing["payload/child_session_id"],
          subagent_kind: toShort(metadata["payload/child_role"]),
          outcome: metadata["payload/child_status"] === "completed" ? "succeeded" : "failed",
          final_message_bytes: toMessageBytes(metadata["payload/child_summary"]),
        },
        scene,
      ),
    ),
);
