import type { Observation } from "../../../schemas/adapter.ts";
import { effectOf, toCount, toShort, valueBytes } from "../../platform/adapter-kit.ts";
import type { Call } from "../../platform/gated-call.ts";
import { toReportedCall, toToolCall } from "../../platform/gated-call.ts";
import type { Meaning, Scene } from "../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toJsonPreview, toTextPreview } from "../../platform/masked-preview.ts";
import type { UnreadableField } from "../../platform/payload-fields.ts";
import { actionInputField, isJsonObject, sortNested } from "../../platform/payload-fields.ts";
import * as fields from "./payloads.ts";
import { toFabricTool, toNamedPaths } from "./tool-names.ts";

const previewMaxChars = 512;
const detailMaxChars = 256;
const unnameable: UnreadableField = { ok: false, problem: "unknown_value", field: "/input/tool" };

const toCall = (
  tool: string,
  alias: string,
  input: Call["input"],
  directory: string,
  parent: string | undefined,
): Call => ({
  tool,
  alias,
  input,
  workingDirectory: directory,
  ...(parent === undefined ? {} : { parentSessionId: parent }),
});

export const toolCall = hookRule("before_tool", true, fields.toolCallFields, ({ bearing }, scene) => {
  const alias = bearing["input/tool"];
  const tool = toFabricTool(alias);
  if (tool === null) return unnameable;
  const input = bearing["output/args"];
  return toToolCall(
    toCall(tool, alias, input, bearing["place/directory"], bearing["place/parent_session"]),
    bearing["input/callID"],
    toNamedPaths(alias, input),
    scene,
  );
});

/** A command of the shell says how it ended; every other tool that ends well ends here, and those that fail elsewhere. */
const toOutcome = (metadata: Readonly<Record<string, unknown>> | undefined): "succeeded" | "failed" => {
  const exit = metadata !== undefined && Object.hasOwn(metadata, "exit") ? metadata["exit"] : undefined;
  return typeof exit === "number" && exit !== 0 ? "failed" : "succeeded";
};

const toChildEnd = (
  tool: string,
  metadata: Readonly<Record<string, unknown>> | undefined,
  scene: Scene,
): readonly Observation[] => {
  const child = metadata !== undefined && Object.hasOwn(metadata, "sessionId") ? metadata["sessionId"] : null;
  return tool === "agent.spawn" && typeof child === "string" && child !== ""
    ? [
        toObservation(
          "agent.subagent.stopped",
          {
            subagent_id: toTextPreview(child, detailMaxChars),
            subagent_kind: null,
            outcome: "succeeded",
            final_message_bytes: null,
          },
          scene,
        ),
      ]
    : [];
};

export const toolResult = hookRule(
  "after_tool",
  false,
  fields.toolResultFields,
  ({ bearing, metadata }, scene) => {
    const alias = bearing["input/tool"];
    const tool = toFabricTool(alias);
    if (tool === null) return unnameable;
    const output = metadata["output/output"];
    const told = metadata["output/metadata"];
    return {
      observations: [
        toObservation(
          "agent.tool.completed",
          {
            outcome: toOutcome(told),
            duration_ms: null,
            output_bytes: output === undefined ? null : valueBytes(output),
            output_preview: output === undefined ? null : toJsonPreview(output, previewMaxChars),
            error_preview: null,
            tool_alias: alias,
          },
          scene,
          { tool },
        ),
        ...toChildEnd(tool, told, scene),
      ],
      nested:
        told === undefined
          ? []
          : [{ dropped: Object.keys(told).length === 0 ? [] : ["/output/metadata/*"], unknownFields: [] }],
      ...toReportedCall(
        { tool, alias, input: metadata["input/args"], workingDirectory: metadata["place/directory"] },
        scene,
      ),
    };
  },
);

/** A person's own shell, or a terminal: the command itself is not told. */
export const userShell = hookRule("ungated_shell", false, fields.shellFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.effect.ungated",
      {
        effect_class: "execute",
        evidence: "result_without_decision",
        detail: toTextPreview(
          `a shell that no tool call started, in ${metadata["input/cwd"] ?? "an unknown folder"}`,
          previewMaxChars,
        ),
      },
      scene,
      { tool: "shell.run" },
    ),
  ),
);

const toFailure = (
  alias: string,
  state: Readonly<Record<string, unknown>>,
  directory: string | undefined,
  scene: Scene,
): Meaning | UnreadableField => {
  const tool = toFabricTool(alias);
  if (tool === null)
    return { ok: false, problem: "unknown_value", field: "/input/event/properties/part/tool" };
  const own = (key: string): unknown => (Object.hasOwn(state, key) ? state[key] : undefined);
  const time = own("time");
  const error = own("error");
  const span =
    isJsonObject(time) && typeof time["start"] === "number" && typeof time["end"] === "number"
      ? time["end"] - time["start"]
      : null;
  const input = actionInputField.safeParse(own("input"));
  return {
    ...observe(
      toObservation(
        "agent.tool.completed",
        {
          outcome: "failed",
          duration_ms: toCount(span),
          output_bytes: null,
          output_preview: null,
          error_preview: typeof error === "string" ? toShort(error, previewMaxChars) : null,
          tool_alias: alias,
        },
        scene,
        { tool },
      ),
      [sortNested("/input/event/properties/part/state", state, readOfState, ["metadata", "title"])],
    ),
    ...toReportedCall(
      { tool, alias, input: input.success ? input.data : undefined, workingDirectory: directory },
      scene,
    ),
  };
};
const readOfState = ["status", "input", "error", "time"];
const leftOfState = ["input", "raw", "error", "time", "output", "metadata", "title", "attachments"];

/** Parts of messages. A tool that failed, was refused or was given nonsense shows here alone. */
export const part = hookRule("message_part", false, fields.partFields, ({ bearing, metadata }, scene) => {
  const kind = bearing["input/event/properties/part/type"];
  const state = metadata["input/event/properties/part/state"];
  const alias = metadata["input/event/properties/part/tool"];
  if (kind === "tool" && state?.status === "error" && alias !== undefined)
    return toFailure(alias, state, metadata["place/directory"], scene);
  const shown = metadata["input/event/properties/part/text"];
  const detail =
    kind === "tool" ? [alias, state?.status].filter((one) => one !== undefined).join(": ") : (shown ?? kind);
  return observe(
    toObservation(
      "agent.lifecycle.observed",
      {
        signal: kind === "text" ? "message_shown" : kind === "step-start" ? "model_requested" : "unknown",
        detail: toTextPreview(detail, detailMaxChars),
        path: null,
      },
      scene,
      { notFrom: ["call"] },
    ),
    state === undefined
      ? []
      : [sortNested("/input/event/properties/part/state", state, ["status"], leftOfState)],
  );
});

/** The client's own question. A plugin cannot answer it in front of the call: it is told. */
export const permissionAsked = hookRule(
  "permission_asked",
  false,
  fields.askedFields,
  ({ bearing, metadata }, scene) => {
    const alias = bearing["input/event/properties/permission"];
    const tool = toFabricTool(alias);
    if (tool === null)
      return { ok: false, problem: "unknown_value", field: "/input/event/properties/permission" };
    const call = metadata["input/event/properties/tool"];
    return observe(
      toObservation(
        "agent.permission.requested",
        {
          effect_class: effectOf(tool),
          input_preview: toJsonPreview(metadata["input/event/properties/metadata"] ?? {}, previewMaxChars),
          tool_alias: alias,
        },
        call === undefined ? scene : { ...scene, place: { ...scene.place, toolCallId: call.callID } },
        { tool },
      ),
      call === undefined ? [] : [sortNested("/input/event/properties/tool", call, ["callID"], ["messageID"])],
    );
  },
);
export const permissionReplied = hookRule(
  "permission_replied",
  false,
  fields.repliedFields,
  ({ bearing, metadata }, scene) => {
    const reply = bearing["input/event/properties/reply"];
    return observe(
      reply === "reject"
        ? toObservation(
            "agent.permission.refused",
            // A person, or the client itself where nobody is there to ask.
            {
              refused_by: "unknown",
              reason: toShort(metadata["input/event/properties/message"], previewMaxChars),
              tool_alias: null,
            },
            scene,
          )
        : toObservation(
            "agent.lifecycle.observed",
            { signal: "input_answered", detail: reply, path: null },
            scene,
          ),
    );
  },
);
