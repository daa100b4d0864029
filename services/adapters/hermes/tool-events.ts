import type { Outcome } from "../../../schemas/generated/types.ts";
import { toCount, toShort, valueBytes } from "../../platform/adapter-kit.ts";
import { toReportedCall, toToolCall } from "../../platform/gated-call.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import type { UnreadableField } from "../../platform/payload-fields.ts";
import { isJsonObject } from "../../platform/payload-fields.ts";
import { toSignal } from "../../platform/plugin-events.ts";
import * as fields from "./payloads.ts";
import { toFabricTool, toNamedPaths } from "./tool-names.ts";

const previewMaxChars = 512;
const unnameable: UnreadableField = { ok: false, problem: "unknown_value", field: "/payload/tool_name" };

export const toolCall = hookRule("before_tool", true, fields.toolCallFields, ({ bearing }, scene) => {
  const alias = bearing["payload/tool_name"];
  const input = bearing["payload/args"];
  const tool = toFabricTool(alias, input);
  if (tool === null) return unnameable;
  const parent = bearing["place/parent_session"];
  return toToolCall(
    {
      tool,
      alias,
      input,
      workingDirectory: bearing["place/directory"],
      ...(parent === undefined ? {} : { parentSessionId: parent }),
    },
    bearing["place/call"],
    toNamedPaths(alias, input),
    scene,
  );
});

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
/** A command that failed has the status `ok` and its code in the result. */
function toOutcome(status: string | undefined, result: string | undefined): Outcome {
  if (status === undefined) return "unknown";
  if (status !== "ok") return "failed";
  const told = result === undefined ? undefined : parseJson(result);
  const code = isJsonObject(told) && Object.hasOwn(told, "exit_code") ? told["exit_code"] : undefined;
  return typeof code === "number" && code !== 0 ? "failed" : "succeeded";
}

export const toolResult = hookRule(
  "after_tool",
  false,
  fields.toolResultFields,
  ({ bearing, metadata }, scene) => {
    const alias = bearing["payload/tool_name"];
    const input = metadata["payload/args"];
    const tool = toFabricTool(alias, input ?? {});
    if (tool === null) return unnameable;
    const { "payload/status": status, "payload/result": result } = metadata;
    const error = metadata["payload/error_message"];
    const parent = bearing["place/parent_session"];
    // Refused by a plugin or by the client's own guard: no call that ran.
    if (status === "blocked")
      return observe(
        toObservation(
          "agent.permission.refused",
          {
            refused_by: "unknown",
            reason: toShort(error ?? result, previewMaxChars),
            tool_alias: alias,
          },
          scene,
          { tool },
        ),
      );
    return {
      ...observe(
        toObservation(
          "agent.tool.completed",
          {
            outcome: toOutcome(status, result),
            duration_ms: toCount(metadata["payload/duration_ms"]),
            output_bytes: result === undefined ? null : valueBytes(result),
            output_preview: result === undefined ? null : toTextPreview(result, previewMaxChars),
            error_preview: toShort(error ?? undefined, previewMaxChars),
            tool_alias: alias,
          },
          scene,
          { tool },
        ),
      ),
      ...toReportedCall(
        {
          tool,
          alias,
          input,
          workingDirectory: metadata["place/directory"],
          ...(parent === undefined ? {} : { parentSessionId: parent }),
        },
        scene,
      ),
    };
  },
);

/** The client's own guard asks a person about a dangerous command. */
export const approvalAsked = hookRule(
  "permission_asked",
  false,
  fields.approvalFields,
  ({ metadata }, scene) =>
    observe(
      toObservation(
        "agent.permission.requested",
        {
          effect_class: "execute",
          input_preview: toTextPreview(metadata["payload/command"] ?? "", previewMaxChars),
          tool_alias: null,
        },
        scene,
        { tool: "shell.run" },
      ),
    ),
);
export const approvalAnswered = hookRule(
  "permission_replied",
  false,
  fields.approvalFields,
  ({ metadata }, scene) => {
    const choice = metadata["payload/choice"];
    return observe(
      choice === "deny"
        ? toObservation(
            "agent.permission.refused",
            {
              refused_by: "unknown",
              reason: toShort(metadata["payload/description"], previewMaxChars),
              tool_alias: null,
            },
            scene,
            { tool: "shell.run" },
          )
        : toSignal("input_answered", choice ?? null, null, scene),
    );
  },
);
