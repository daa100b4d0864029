import type { Refuser } from "../../../schemas/generated/types.ts";
import {
  textBytes,
  toCount,
  toMessageBytes,
  toShort,
  toSize,
  valueBytes,
} from "../../platform/adapter-kit.ts";
import { toReportedCall } from "../../platform/gated-call.ts";
import type { HookRule } from "../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toPathText } from "../../platform/listed-paths.ts";
import { toJsonPreview, toTextPreview } from "../../platform/masked-preview.ts";
import * as fields from "./payloads.ts";

const previewMaxChars = 512;
const promptPreviewMaxChars = 256;
const detailMaxChars = 256;

const configLoaded = hookRule("configuration", false, fields.configurationFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.lifecycle.observed",
      {
        signal: "configuration_changed",
        detail: toShort(metadata.digest, detailMaxChars),
        path: metadata.source === undefined ? null : toPathText(metadata.source),
      },
      scene,
    ),
  ),
);
const sessionStart = hookRule("session_start", false, fields.sessionStartFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.session.started",
      {
        source: metadata.source ?? "unknown",
        model: toShort(metadata.model),
        working_directory:
          metadata.working_directory === undefined ? null : toPathText(metadata.working_directory),
      },
      scene,
      {
        notFrom: ["call", "subagent", "turn", "session"],
        anchor: { scope: "session", id: scene.place.sessionId },
      },
    ),
  ),
);
const sessionEnd = hookRule("session_end", false, fields.sessionEndFields, ({ metadata }, scene) =>
  observe(
    toObservation("agent.session.ended", { reason: toShort(metadata.reason) }, scene, {
      notFrom: ["call", "subagent", "turn"],
    }),
  ),
);
const prompt = hookRule("prompt", false, fields.promptFields, ({ bearing }, scene) =>
  observe(
    toObservation(
      "agent.prompt.submitted",
      {
        prompt_bytes: textBytes(bearing.prompt),
        preview: toTextPreview(bearing.prompt, promptPreviewMaxChars),
        command_name: null,
      },
      scene,
    ),
  ),
);
const turnStart = hookRule("turn_start", false, fields.turnStartFields, ({ bearing, metadata }, scene) =>
  observe(
    toObservation("agent.turn.started", { trigger: metadata.trigger ?? "unknown" }, scene, {
      notFrom: ["turn"],
      anchor: { scope: "turn", id: bearing.turn_id },
    }),
  ),
);
const turnEnd = hookRule("turn_end", false, fields.turnEndFields, ({ bearing, metadata }, scene) =>
  observe(
    toObservation(
      "agent.turn.completed",
      {
        outcome: bearing.outcome,
        error_kind: toShort(metadata.error_kind),
        final_message_bytes: toMessageBytes(metadata.final_message),
        continued_by_hook: metadata.continued_by_hook ?? false,
        background_tasks: 0,
      },
      scene,
    ),
  ),
);
const model = hookRule("after_model", false, fields.modelFields, ({ bearing, metadata }, scene) =>
  observe(
    toObservation(
      "agent.model.completed",
      {
        model: toTextPreview(bearing.model, 128),
        outcome: bearing.outcome,
        input_tokens: toCount(metadata.input_tokens),
        cached_input_tokens: toCount(metadata.cached_input_tokens),
        cache_write_tokens: toCount(metadata.cache_write_tokens),
        output_tokens: toCount(metadata.output_tokens),
        reasoning_tokens: toCount(metadata.reasoning_tokens),
        duration_ms: toCount(metadata.duration_ms),
        cost_micros: null,
        error_kind: toShort(metadata.error_kind),
        model_call_id: toShort(metadata.model_call_id, 256),
      },
      scene,
    ),
  ),
);
const toolResult = hookRule("after_tool", false, fields.toolResultFields, ({ bearing, metadata }, scene) => {
  const { tool } = bearing;
  const { output, input, working_directory: workingDirectory } = metadata;
  return {
    ...observe(
      toObservation(
        "agent.tool.completed",
        {
          outcome: "succeeded",
          duration_ms: toCount(metadata.duration_ms),
          output_bytes: output === undefined ? null : valueBytes(output),
          output_preview: output === undefined ? null : toJsonPreview(output, previewMaxChars),
          error_preview: null,
          tool_alias: null,
        },
        scene,
        { tool },
      ),
    ),
    ...toReportedCall({ tool, alias: tool, input, workingDirectory }, scene),
  };
});
const toolFailure = hookRule(
  "after_failed_tool",
  false,
  fields.toolFailureFields,
  ({ bearing, metadata }, scene) => {
    const { tool } = bearing;
    const { error, input, working_directory: workingDirectory } = metadata;
    return {
      ...observe(
        toObservation(
          "agent.tool.completed",
          {
            outcome: bearing.outcome,
            duration_ms: toCount(metadata.duration_ms),
            output_bytes: null,
            output_preview: null,
            error_preview: error === undefined ? null : toTextPreview(error, previewMaxChars),
            tool_alias: null,
          },
          scene,
          { tool },
        ),
      ),
      // It may have read what its labels speak of before it failed.
      ...toReportedCall({ tool, alias: tool, input, workingDirectory }, scene),
    };
  },
);
const refusers = {
  hook: "runtime",
  guard: "runtime",
  approval: "user",
  gate: "gate",
} as const satisfies Record<string, Refuser>;
const toolBlocked = hookRule(
  "tool_blocked",
  false,
  fields.toolBlockedFields,
  ({ bearing, metadata }, scene) =>
    observe(
      toObservation(
        "agent.permission.refused",
        {
          refused_by: refusers[bearing.by],
          reason: toShort(
            [metadata.reason_code, metadata.message].filter((part) => part !== undefined).join(": "),
            previewMaxChars,
          ),
          tool_alias: null,
        },
        scene,
        { tool: bearing.tool },
      ),
    ),
);
const subagentStart = hookRule(
  "subagent_start",
  false,
  fields.subagentStartFields,
  ({ bearing, metadata }, scene) =>
    observe(
      toObservation(
        "agent.subagent.started",
        { subagent_id: bearing.subagent_id, subagent_kind: toShort(metadata.kind) },
        scene,
        { anchor: { scope: "subagent", id: bearing.subagent_id } },
      ),
    ),
);
const subagentStop = hookRule(
  "subagent_end",
  false,
  fields.subagentStopFields,
  ({ bearing, metadata }, scene) =>
    observe(
      toObservation(
        "agent.subagent.stopped",
        {
          subagent_id: bearing.subagent_id,
          subagent_kind: toShort(metadata.kind),
          outcome: bearing.outcome,
          final_message_bytes: toMessageBytes(metadata.final_message),
        },
        { ...scene, place: { ...scene.place, agentId: bearing.subagent_id } },
      ),
    ),
);
const compaction = hookRule("before_compaction", false, fields.compactionFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.lifecycle.observed",
      { signal: "compaction_requested", detail: toShort(metadata.trigger), path: null },
      scene,
    ),
  ),
);
const compacted = hookRule("after_compaction", false, fields.compactedFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.session.compacted",
      {
        trigger: metadata.trigger ?? "unknown",
        summary_bytes: metadata.summary_bytes === undefined ? null : toSize(metadata.summary_bytes),
      },
      scene,
    ),
  ),
);

/** Every event that the SDK sends, by its name. None asks: the question has a route of its own. */
export const rules: ReadonlyMap<string, HookRule> = new Map([
  ["ConfigLoaded", configLoaded],
  ["SessionStart", sessionStart],
  ["SessionEnd", sessionEnd],
  ["UserPromptSubmit", prompt],
  ["TurnStart", turnStart],
  ["TurnEnd", turnEnd],
  ["ModelCompleted", model],
  ["PostToolUse", toolResult],
  ["PostToolUseFailure", toolFailure],
  ["ToolBlocked", toolBlocked],
  ["SubagentStart", subagentStart],
  ["SubagentStop", subagentStop],
  ["PreCompact", compaction],
  ["PostCompact", compacted],
]);
