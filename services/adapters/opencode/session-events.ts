import { compact, textBytes, toCount, toShort } from "../../platform/adapter-kit.ts";
import type { Scene } from "../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toPathText } from "../../platform/listed-paths.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import { isJsonObject, sortNested } from "../../platform/payload-fields.ts";
import { toPluginText, toSignal } from "../../platform/plugin-events.ts";
import * as fields from "./payloads.ts";

const previewMaxChars = 256;

export const loaded = hookRule("hooks_loaded", false, fields.loadedFields, ({ metadata }, scene) => {
  const directory = metadata["place/directory"];
  return observe(toSignal("hooks_loaded", toPluginText(metadata), directory ?? null, scene));
});
export const unloaded = hookRule("hooks_unloaded", false, fields.unloadedFields, ({ metadata }, scene) =>
  observe(toSignal("hooks_unloaded", toPluginText(metadata), null, scene)),
);

/** A child agent has a session of its own; its parent's record says that it was started. */
export const sessionCreated = hookRule(
  "session_start",
  false,
  fields.createdFields,
  ({ metadata }, scene) => {
    const { sessionId } = scene.place;
    const directory = metadata["input/event/properties/info/directory"];
    const parent = metadata["input/event/properties/info/parentID"];
    const started = toObservation(
      "agent.session.started",
      {
        source: "startup",
        model: null,
        working_directory: directory === undefined ? null : toPathText(directory),
      },
      scene,
      { notFrom: ["session"], anchor: { scope: "session", id: sessionId } },
    );
    if (parent === undefined) return observe(started);
    const inParent: Scene = { ...scene, place: { sessionId: parent } };
    const child = toObservation(
      "agent.subagent.started",
      {
        subagent_id: sessionId,
        subagent_kind: toShort(metadata["input/event/properties/info/agent"]),
      },
      inParent,
      { anchor: { scope: "subagent", id: sessionId } },
    );
    return { observations: [started, child] };
  },
);

/** The texts that a person, or the agent that spawned this one, wrote. */
const toPromptText = (parts: readonly unknown[]): string =>
  parts
    .flatMap((one) => (isJsonObject(one) && typeof one["text"] === "string" ? [one["text"]] : []))
    .join("\n");
export const prompt = hookRule("prompt", false, fields.promptFields, ({ bearing }, scene) => {
  const text = toPromptText(bearing["output/parts"]);
  const turnId = bearing["output/message/id"];
  const place = { ...scene, place: compact({ ...scene.place, turnId }) };
  return {
    observations: [
      toObservation(
        "agent.turn.started",
        { trigger: bearing["place/parent_session"] === undefined ? "prompt" : "subagent" },
        place,
        { notFrom: ["turn"], anchor: { scope: "turn", id: turnId } },
      ),
      toObservation(
        "agent.prompt.submitted",
        { prompt_bytes: textBytes(text), preview: toTextPreview(text, previewMaxChars), command_name: null },
        place,
      ),
    ],
    nested: [
      sortNested(
        "/output/parts",
        bearing["output/parts"],
        ["text"],
        ["type", "id", "messageID", "sessionID", "synthetic", "time", "mime", "filename", "url", "source"],
      ),
    ],
  };
});
export const idle = hookRule("turn_end", false, fields.idleFields, (_, scene) =>
  observe(
    toObservation(
      "agent.turn.completed",
      {
        outcome: "unknown",
        error_kind: null,
        final_message_bytes: null,
        continued_by_hook: false,
        background_tasks: 0,
      },
      scene,
    ),
  ),
);
export const failed = hookRule("session_error", false, fields.errorFields, ({ metadata }, scene) => {
  const error = metadata["input/event/properties/error"];
  return observe(
    toSignal("notice_shown", error?.name ?? null, null, scene),
    error === undefined ? [] : [sortNested("/input/event/properties/error", error, ["name"], ["data"])],
  );
});

/**
 * A message of the model that ended. The client counts cached and cache-written tokens beside its input, and reasoning
 * beside its output; here each is part of the whole.
 */
export const message = hookRule("message", false, fields.messageFields, ({ bearing, metadata }, scene) => {
  const time = metadata["input/event/properties/info/time"];
  const used = metadata["input/event/properties/info/tokens"];
  const error = metadata["input/event/properties/info/error"];
  const model = metadata["input/event/properties/info/modelID"];
  const nested = [
    ...(time === undefined
      ? []
      : [sortNested("/input/event/properties/info/time", time, ["created", "completed"], [])]),
    ...(used === undefined
      ? []
      : [
          sortNested("/input/event/properties/info/tokens", used, tokenKeys, ["total"]),
          sortNested("/input/event/properties/info/tokens/cache", used.cache ?? {}, ["read", "write"], []),
        ]),
    ...(error === undefined
      ? []
      : [sortNested("/input/event/properties/info/error", error, ["name"], ["data"])]),
  ];
  if (
    bearing["input/event/properties/info/role"] !== "assistant" ||
    time?.completed === undefined ||
    model === undefined
  )
    return observe(
      toSignal("unknown", `message: ${bearing["input/event/properties/info/role"]}`, null, scene),
      nested,
    );
  const cost = metadata["input/event/properties/info/cost"];
  return observe(
    toObservation(
      "agent.model.completed",
      {
        model: toTextPreview(model, 128),
        outcome: error === undefined ? "succeeded" : "failed",
        input_tokens: toSum(used?.input, used?.cache?.read, used?.cache?.write),
        cached_input_tokens: toCount(used?.cache?.read),
        cache_write_tokens: toCount(used?.cache?.write),
        output_tokens: toSum(used?.output, used?.reasoning),
        reasoning_tokens: toCount(used?.reasoning),
        duration_ms: toCount(time.completed - time.created),
        cost_micros: toCount(cost === undefined || cost === 0 ? undefined : Math.round(cost * 1_000_000)),
        error_kind: toShort(error?.name),
        model_call_id: metadata["input/event/properties/info/id"] ?? null,
      },
      scene,
    ),
    nested,
  );
});
const tokenKeys = ["input", "output", "reasoning", "cache"];
/** The whole of which the first is the part without the others; null when that one is not told. */
const toSum = (first: number | undefined, ...others: readonly (number | undefined)[]): bigint | null =>
  first === undefined ? null : toCount(others.reduce<number>((sum, one) => sum + (one ?? 0), first));

export const compacting = hookRule("before_compaction", false, fields.compactingFields, (_, scene) =>
  observe(toSignal("compaction_requested", null, null, scene)),
);
export const compacted = hookRule("after_compaction", false, fields.compactedFields, (_, scene) =>
  observe(toObservation("agent.session.compacted", { trigger: "unknown", summary_bytes: null }, scene)),
);
