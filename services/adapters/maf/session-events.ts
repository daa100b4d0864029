import type { Observation } from "../../../schemas/adapter.ts";
import { textBytes, toCount, toShort, valueBytes } from "../../platform/adapter-kit.ts";
import type { Scene } from "../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toPathText } from "../../platform/listed-paths.ts";
import { toJsonPreview, toTextPreview } from "../../platform/masked-preview.ts";
import * as fields from "./payloads.ts";

const previewMaxChars = 256;

/** The turn's anchor is the run's own id, which the middleware made. */
const toTurn = (trigger: "prompt" | "subagent", scene: Scene): Observation => {
  const { turnId } = scene.place;
  return toObservation("agent.turn.started", { trigger }, scene, {
    notFrom: ["turn"],
    anchor: turnId === undefined ? undefined : { scope: "turn", id: turnId },
  });
};

/** One run of an agent. A child agent's is told in its parent's session too. */
export const run = hookRule("prompt", false, fields.runFields, ({ bearing, metadata }, scene) => {
  const prompt = metadata["payload/prompt"];
  const parent = bearing["place/parent_session"];
  const { sessionId } = scene.place;
  const name = metadata["payload/agent_name"] ?? undefined;
  return {
    observations: [
      toTurn(parent === undefined ? "prompt" : "subagent", scene),
      ...(prompt === undefined
        ? []
        : [
            toObservation(
              "agent.prompt.submitted",
              {
                prompt_bytes: textBytes(prompt),
                preview: toTextPreview(prompt, previewMaxChars),
                command_name: null,
              },
              scene,
            ),
          ]),
      ...(parent === undefined
        ? []
        : [
            toObservation(
              "agent.subagent.started",
              { subagent_id: sessionId, subagent_kind: toShort(name) },
              { ...scene, place: { sessionId: parent } },
              { anchor: { scope: "subagent", id: sessionId } },
            ),
          ]),
    ],
  };
});
export const runEnd = hookRule("turn_end", false, fields.runEndFields, ({ bearing, metadata }, scene) => {
  const parent = bearing["place/parent_session"];
  const outcome = metadata["payload/outcome"] ?? "unknown";
  return {
    observations: [
      toObservation(
        "agent.turn.completed",
        {
          outcome,
          error_kind: toShort(metadata["payload/error_type"]),
          final_message_bytes: null,
          continued_by_hook: false,
          background_tasks: 0,
        },
        scene,
      ),
      ...(parent === undefined
        ? []
        : [
            toObservation(
              "agent.subagent.stopped",
              {
                subagent_id: scene.place.sessionId,
                subagent_kind: null,
                outcome,
                final_message_bytes: null,
              },
              { ...scene, place: { sessionId: parent, agentId: scene.place.sessionId } },
            ),
          ]),
    ],
  };
});

/** The framework's counts: cached and cache-written tokens are part of the input, reasoning part of the output. */
const toModelCall = (
  told: {
    readonly model: string | undefined;
    readonly id: string | null | undefined;
    readonly usage: Readonly<Record<string, number>> | undefined;
    readonly durationMs: number | undefined;
  },
  scene: Scene,
): Observation => {
  const of = (...keys: readonly string[]): bigint | null =>
    toCount(keys.map((key) => told.usage?.[key]).find((value) => value !== undefined));
  return toObservation(
    "agent.model.completed",
    {
      model: toTextPreview(told.model ?? "unknown", 128),
      outcome: "succeeded",
      input_tokens: of("input_token_count"),
      cached_input_tokens: of("cache_read_input_token_count", "prompt/cached_tokens"),
      cache_write_tokens: of("cache_creation_input_token_count"),
      output_tokens: of("output_token_count"),
      reasoning_tokens: of("reasoning_output_token_count", "completion/reasoning_tokens"),
      duration_ms: toCount(told.durationMs),
      cost_micros: null,
      error_kind: null,
      model_call_id: told.id ?? null,
    },
    scene,
  );
};
export const modelCall = hookRule("after_model", false, fields.modelFields, ({ metadata }, scene) =>
  observe(
    toModelCall(
      {
        model: metadata["payload/model"],
        id: metadata["payload/response_id"],
        usage: metadata["payload/usage_details"],
        durationMs: metadata["payload/duration_ms"],
      },
      scene,
    ),
  ),
);
export const interceptedModelCall = hookRule(
  "after_model",
  false,
  fields.interceptedModelFields,
  ({ metadata }, scene) =>
    observe(
      toModelCall(
        {
          model: metadata["payload/model"]?.id,
          id: metadata["payload/request_id"],
          usage: metadata["payload/usage"],
          durationMs: undefined,
        },
        scene,
      ),
    ),
);

export const startup = hookRule("session_start", false, fields.startupFields, ({ metadata }, scene) => {
  const directory = metadata["place/directory"];
  return observe(
    toObservation(
      "agent.session.started",
      {
        source: "startup",
        model: null,
        working_directory: directory === undefined ? null : toPathText(directory),
      },
      scene,
      { notFrom: ["turn", "session"], anchor: { scope: "session", id: scene.place.sessionId } },
    ),
  );
});
export const input = hookRule("prompt", false, fields.inputFields, ({ metadata }, scene) => {
  const content = metadata["payload/input"]?.content;
  return {
    observations: [
      toTurn("prompt", scene),
      toObservation(
        "agent.prompt.submitted",
        {
          prompt_bytes: valueBytes(content ?? "") ?? 0,
          preview:
            typeof content === "string"
              ? toTextPreview(content, previewMaxChars)
              : toJsonPreview(content ?? null, previewMaxChars),
          command_name: null,
        },
        scene,
      ),
    ],
  };
});
export const shutdown = hookRule("session_end", false, fields.shutdownFields, ({ metadata }, scene) =>
  observe(
    toObservation("agent.session.ended", { reason: toShort(metadata["payload/summary"]?.reason) }, scene),
  ),
);
