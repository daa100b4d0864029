import type { Outcome } from "../../../schemas/generated/types.ts";
import { toCount, toShort, valueBytes } from "../../platform/adapter-kit.ts";
import { toReportedCall, toToolCall } from "../../platform/gated-call.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toJsonPreview } from "../../platform/masked-preview.ts";
import type { UnreadableField } from "../../platform/payload-fields.ts";
import { isJsonObject } from "../../platform/payload-fields.ts";
import * as fields from "./payloads.ts";
import { toFabricTool, toNamedPaths } from "./tool-names.ts";

const previewMaxChars = 512;
const unnameable: UnreadableField = { ok: false, problem: "unknown_value", field: "/event/toolName" };

export const toolCall = hookRule("before_tool", true, fields.toolCallFields, ({ bearing }, scene) => {
  const alias = bearing["event/toolName"];
  const input = bearing["event/params"];
  const tool = toFabricTool(alias, input);
  if (tool === null) return unnameable;
  return toToolCall(
    {
      tool,
      alias,
      input,
      workingDirectory: bearing["place/directory"],
      hasUserDialog: bearing["place/user_dialog"] === true,
    },
    bearing["event/toolCallId"],
    toNamedPaths(alias, input),
    scene,
  );
});

const own = (value: unknown, key: string): unknown =>
  isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;

/** The client marks no command as failed by its exit code alone. */
function toOutcome(result: unknown, error: string | undefined): Outcome {
  if (error !== undefined) return "failed";
  const details = own(result, "details");
  const exitCode = own(details, "exitCode");
  if (typeof exitCode === "number") return exitCode === 0 ? "succeeded" : "failed";
  const status = own(details, "status");
  if (status === "error" || status === "failed") return "failed";
  return result === undefined ? "unknown" : "succeeded";
}

export const toolResult = hookRule(
  "after_tool",
  false,
  fields.toolResultFields,
  ({ bearing, metadata }, scene) => {
    const alias = bearing["event/toolName"];
    const input = metadata["event/params"];
    const tool = toFabricTool(alias, input ?? {});
    if (tool === null) return unnameable;
    const result = metadata["event/result"];
    // Refused by a plugin, or by the client itself: no call that ran.
    if (own(own(result, "details"), "status") === "blocked")
      return observe(
        toObservation(
          "agent.permission.refused",
          {
            refused_by: "runtime",
            reason: toShort(toText(own(own(result, "details"), "deniedReason")), previewMaxChars),
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
            outcome: toOutcome(result, metadata["event/error"]),
            duration_ms: toCount(metadata["event/durationMs"]),
            output_bytes: result === undefined ? null : valueBytes(result),
            output_preview: result === undefined ? null : toJsonPreview(result, previewMaxChars),
            error_preview: toShort(metadata["event/error"], previewMaxChars),
            tool_alias: alias,
          },
          scene,
          { tool },
        ),
      ),
      ...toReportedCall({ tool, alias, input, workingDirectory: metadata["place/directory"] }, scene),
    };
  },
);
const toText = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
