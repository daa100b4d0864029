import type { Observation } from "../../../schemas/adapter.ts";
import type { Outcome } from "../../../schemas/generated/types.ts";
import { textBytes, toMessageBytes, toShort, toSize } from "../../platform/adapter-kit.ts";
import type { Scene } from "../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toPathText } from "../../platform/listed-paths.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
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

const toPrompt = (prompt: string, command: string | undefined, scene: Scene): Observation =>
  toObservation(
    "agent.prompt.submitted",
    {
      prompt_bytes: textBytes(prompt),
      preview: toTextPreview(prompt, previewMaxChars),
      command_name: toShort(command),
    },
    scene,
  );
export const prompt = hookRule("prompt", false, fields.promptFields, ({ bearing }, scene) => {
  const { turnId } = scene.place;
  const turn = toObservation("agent.turn.started", { trigger: "prompt" }, scene, {
    notFrom: ["turn"],
    anchor: turnId === undefined ? undefined : { scope: "turn", id: turnId },
  });
  return { observations: [turn, toPrompt(bearing.prompt, undefined, scene)] };
});
/** The turn itself is left to the prompt event: a turn counted twice would be worse than one found late. */
export const command = hookRule(
  "prompt_expansion",
  false,
  fields.commandFields,
  ({ bearing, metadata }, scene) => observe(toPrompt(bearing.prompt, metadata.command_name, scene)),
);

const toTurnEnd = (
  outcome: Outcome,
  errorKind: string | null,
  metadata: {
    readonly last_assistant_message?: string | null;
    readonly stop_hook_active?: boolean;
    readonly background_tasks?: readonly unknown[];
  },
  scene: Scene,
): Observation =>
  toObservation(
    "agent.turn.completed",
    {
      outcome,
      error_kind: errorKind,
      final_message_bytes: toMessageBytes(metadata.last_assistant_message),
      continued_by_hook: metadata.stop_hook_active ?? false,
      background_tasks: toSize(metadata.background_tasks?.length ?? 0),
    },
    scene,
  );
export const stop = hookRule("turn_end", false, fields.stopFields, ({ metadata }, scene) =>
  observe(
    toTurnEnd("succeeded", null, metadata, scene),
    // Only how many there are is kept.
    (metadata.background_tasks ?? []).length === 0
      ? []
      : [{ dropped: ["/background_tasks/*"], unknownFields: [] }],
  ),
);
export const stopFailure = hookRule("turn_failure", false, fields.stopFailureFields, ({ metadata }, scene) =>
  observe(toTurnEnd("failed", toShort(metadata.error), metadata, scene)),
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

export const compacted = hookRule("after_compaction", false, fields.compactedFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.session.compacted",
      {
        trigger:
          metadata.trigger === undefined ? "unknown" : metadata.trigger === "auto" ? "automatic" : "manual",
        summary_bytes: toMessageBytes(metadata.compact_summary),
      },
      scene,
    ),
  ),
);
