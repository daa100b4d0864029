import type { Outcome } from "../../../schemas/generated/types.ts";
import { valueBytes } from "../../platform/adapter-kit.ts";
import type { Call } from "../../platform/gated-call.ts";
import { toPermissionQuestion, toReportedCall, toToolCall } from "../../platform/gated-call.ts";

import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toJsonPreview } from "../../platform/masked-preview.ts";
import type { UnreadableField } from "../../platform/payload-fields.ts";
import { isJsonObject } from "../../platform/payload-fields.ts";
import * as fields from "./payloads.ts";
import { toFabricTool, toNamedPaths } from "./tool-names.ts";

const previewMaxChars = 512;

const unnameable: UnreadableField = { ok: false, problem: "unknown_value", field: "/tool_name" };

const toCall = (
  tool: string,
  read: {
    readonly tool_name: string;
    readonly tool_input: Readonly<Record<string, unknown>>;
    readonly cwd: string;
  },
): Call => ({ tool, alias: read.tool_name, input: read.tool_input, workingDirectory: read.cwd });

export const toolCall = hookRule("before_tool", true, fields.toolCallFields, ({ bearing }, scene) => {
  const tool = toFabricTool(bearing.tool_name);
  if (tool === null) return unnameable;
  const paths = toNamedPaths(bearing.tool_name, bearing.tool_input);
  return toToolCall(toCall(tool, bearing), bearing.tool_use_id, paths, scene);
});
export const permission = hookRule("permission", true, fields.permissionFields, ({ bearing }, scene) => {
  const tool = toFabricTool(bearing.tool_name);
  return tool === null ? unnameable : toPermissionQuestion(toCall(tool, bearing), scene);
});

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
/**
 * What a response says of the outcome. A shell's is its bare output, which says nothing: this event comes for a command
 * that failed as well.
 */
export function toOutcome(alias: string, response: unknown): Outcome {
  if (isJsonObject(response)) {
    // A tool server's result; one that reports an error sends no event here, as far as seen.
    if (response["isError"] === true) return "failed";
    return Array.isArray(response["content"]) ? "succeeded" : "unknown";
  }
  if (typeof response !== "string") return "unknown";
  if (alias === "apply_patch") {
    const code = /^Exit code: (-?\d{1,10})\r?(?:\n|$)/.exec(response)?.[1];
    return code === undefined ? "unknown" : Number(code) === 0 ? "succeeded" : "failed";
  }
  if (alias === "spawn_agent") {
    const child = parseJson(response);
    return isJsonObject(child) && typeof child["agent_id"] === "string" ? "succeeded" : "unknown";
  }
  return "unknown";
}
export const toolResult = hookRule(
  "after_tool",
  false,
  fields.toolResultFields,
  ({ bearing, metadata }, scene) => {
    const tool = toFabricTool(bearing.tool_name);
    if (tool === null) return unnameable;
    const response = metadata.tool_response;
    const { tool_input: input, cwd: workingDirectory } = metadata;
    return {
      ...observe(
        toObservation(
          "agent.tool.completed",
          {
            outcome: toOutcome(bearing.tool_name, response),
            duration_ms: null,
            output_bytes: response === undefined ? null : valueBytes(response),
            output_preview: response === undefined ? null : toJsonPreview(response, previewMaxChars),
            error_preview: null,
            tool_alias: bearing.tool_name,
          },
          scene,
          { tool },
        ),
      ),
      ...toReportedCall({ tool, alias: bearing.tool_name, input, workingDirectory }, scene),
    };
  },
);
