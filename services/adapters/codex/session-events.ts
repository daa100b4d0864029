import type { Outcome } from "../../../schemas/generated/types.ts";
import { textBytes, toMessageBytes, toCount, toShort } from "../../platform/adapter-kit.ts";
import type { Meaning, Scene } from "../../platform/hook-table.ts";
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
  ({ metadata }, scene) =>
    observe(
      toObservation(
        "agent.session.started",
        {
          source: metadata.source ?? "unknown",
          model: toShort(metadata.model),
          working_directory: metadata.cwd === undefined ? null : toPathText(metadata.cwd),
        },
        scene,
        {
          notFrom: ["call", "subagent", "turn", "session"],
          anchor: { scope: "session", id: scene.place.sessionId },
        },
      ),
    ),
);
export const sessionEnd = hookRule("session_end", false, fields.sessionEndFields, ({ metadata }, scene) =>
  observe(
    toObservation("agent.session.ended", { reason: toShort(metadata.reason) }, scene, {
      notFrom: ["call", "subagent", "turn"],
    }),
  ),
);

/** A child agent's task comes as a prompt of its own, in a turn of its own. */
export const prompt = hookRule("prompt", false, fields.promptFields, ({ bearing }, scene) => ({
  observations: [
    toObservation(
      "agent.turn.started",
      { trigger: bearing.agent_id === undefined ? "prompt" : "subagent" },
      scene,
      { notFrom: ["turn"], anchor: { scope: "turn", id: bearing.turn_id } },
    ),
    toObservation(
      "agent.prompt.submitted",
      {
        prompt_bytes: textBytes(bearing.prompt),
        preview: toTextPreview(bearing.prompt, previewMaxChars),
        command_name: null,
      },
      scene,
      { notFrom: ["subagent"] },
    ),
  ],
}));

const toTurnEnd = (
  outcome: Outcome,
  message: string | null | undefined,
  isContinued: boolean,
  scene: Scene,
): Meaning =>
  observe(
    toObservation(
      "agent.turn.completed",
      {
        outcome,
        error_kind: null,
        final_message_bytes: toMessageBytes(message),
        continued_by_hook: isContinued,
        background_tasks: 0,
      },
      scene,
    ),
  );
export const stop = hookRule("turn_end", false, fields.stopFields, ({ metadata }, scene) =>
  toTurnEnd("succeeded", metadata.last_assistant_message, metadata.stop_hook_active ?? false, scene),
);
export const interrupt = hookRule("turn_interrupted", false, fields.interruptFields, (_, scene) =>
  toTurnEnd("interrupted", null, false, scene),
);

export const subagentStart = hookRule(
  "subagent_start",
  false,
  fields.subagentStartFields,
  ({ bearing, metadata }, scene) =>
    observe(
      toObservation(
        "agent.subagent.started",
        { subagent_id: bearing.agent_id, subagent_kind: toShort(metadata.agent_type) },
        scene,
        { notFrom: ["subagent"], anchor: { scope: "subagent", id: bearing.agent_id } },
      ),
    ),
);
export const subagentStop = hookRule(
  "subagent_end",
  false,
  fields.subagentStopFields,
  ({ bearing, metadata }, scene) =>
    observe(
      toObservation(
        "agent.subagent.stopped",
        {
          subagent_id: bearing.agent_id,
          subagent_kind: toShort(metadata.agent_type),
          outcome: "succeeded",
          final_message_bytes: toMessageBytes(metadata.last_assistant_message),
        },
        scene,
      ),
    ),
);

export const compaction = hookRule(
  "before_compaction",
  false,
  fields.compactionFields,
  ({ metadata }, scene) =>
    observe(
      toObservation(
        "agent.lifecycle.observed",
        { signal: "compaction_requested", detail: toShort(metadata.trigger), path: null },
        scene,
      ),
    ),
);
export const compacted = hookRule("after_compaction", false, fields.compactedFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.session.compacted",
      {
        trigger:
          metadata.trigger === undefined ? "unknown" : metadata.trigger === "auto" ? "automatic" : "manual",
        summary_bytes: null,
      },
      scene,
    ),
  ),
);

export const modelRequest = hookRule(
  "before_model",
  false,
  fields.modelRequestFields,
  ({ metadata }, scene) =>
    observe(
      toObservation(
        "agent.lifecycle.observed",
        { signal: "model_requested", detail: toShort(metadata.model), path: null },
        scene,
      ),
    ),
);
const outcomes: ReadonlyMap<string, Outcome> = new Map<string, Outcome>([
  ["completed", "succeeded"],
  ["failed", "failed"],
]);
export const modelResult = hookRule(
  "after_model",
  false,
  fields.modelResultFields,
  ({ bearing, metadata }, scene) => {
    const { token_usage: usage, status } = metadata;
    const outcome = status === undefined ? undefined : outcomes.get(status);
    return observe(
      toObservation(
        "agent.model.completed",
        {
          model: toTextPreview(bearing.model, 128),
          outcome: outcome ?? "unknown",
          input_tokens: toCount(usage?.input_tokens),
          cached_input_tokens: toCount(usage?.cached_input_tokens),
          cache_write_tokens: toCount(usage?.cache_write_input_tokens),
          output_tokens: toCount(usage?.output_tokens),
          reasoning_tokens: toCount(usage?.reasoning_output_tokens),
          duration_ms: null,
          cost_micros: null,
          error_kind: toShort(metadata.error ?? undefined),
          model_call_id: null,
        },
        scene,
      ),
      [
        ...(usage == null
          ? []
          : [sortNested("/token_usage", usage, fields.tokenUsageKeys, ["total_tokens"])]),
        ...(status !== undefined && outcome === undefined
          ? [{ dropped: [], unknownFields: ["/status"] }]
          : []),
      ],
    );
  },
);
