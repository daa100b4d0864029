import type { Outcome } from "../../../schemas/generated/types.ts";
import { toCount, toShort, valueBytes } from "../../platform/adapter-kit.ts";
import type { Call } from "../../platform/gated-call.ts";
import { toReportedCall, toToolCall } from "../../platform/gated-call.ts";
import type { Meaning, Scene } from "../../platform/hook-table.ts";
import { hookRule, toObservation } from "../../platform/hook-table.ts";
import { toJsonPreview } from "../../platform/masked-preview.ts";
import type { UnreadableField } from "../../platform/payload-fields.ts";
import * as fields from "./payloads.ts";
import { toFabricTool } from "./tool-names.ts";

const previewMaxChars = 512;
const unnameable: UnreadableField = { ok: false, problem: "unknown_value", field: "/place/tool_name" };

interface NamedCall {
  readonly "place/call": string;
  readonly "place/tool_name": string;
  readonly "place/fabric_tool"?: string | null | undefined;
  readonly "place/parent_session"?: string | undefined;
}

const toCall = (tool: string, read: NamedCall, input: Call["input"], directory: string): Call => ({
  tool,
  alias: read["place/tool_name"],
  input,
  workingDirectory: directory,
  ...(read["place/parent_session"] === undefined ? {} : { parentSessionId: read["place/parent_session"] }),
});
function toQuestion(
  read: NamedCall,
  input: Call["input"],
  directory: string,
  scene: Scene,
): Meaning | UnreadableField {
  const tool = toFabricTool(read["place/tool_name"], read["place/fabric_tool"] ?? undefined);
  // Which of its fields names a file is the function's own affair.
  return tool === null
    ? unnameable
    : toToolCall(toCall(tool, read, input, directory), read["place/call"], [], scene);
}

export const toolCall = hookRule("before_tool", true, fields.toolCallFields, ({ bearing }, scene) =>
  toQuestion(bearing, bearing["payload/arguments"], bearing["place/directory"], scene),
);
export const interceptedCall = hookRule(
  "before_tool",
  true,
  fields.interceptedCallFields,
  ({ bearing }, scene) =>
    toQuestion(bearing, bearing["payload/tool_call/args"], bearing["place/directory"], scene),
);

function toCompleted(
  read: NamedCall,
  told: {
    readonly outcome: Outcome;
    readonly result: unknown;
    readonly error: string | undefined;
    readonly durationMs: number | undefined;
    readonly input: Call["input"] | undefined;
    readonly directory: string | undefined;
  },
  scene: Scene,
): Meaning | UnreadableField {
  const alias = read["place/tool_name"];
  const tool = toFabricTool(alias, read["place/fabric_tool"] ?? undefined);
  if (tool === null) return unnameable;
  const parent = read["place/parent_session"];
  return {
    observations: [
      toObservation(
        "agent.tool.completed",
        {
          outcome: told.outcome,
          duration_ms: toCount(told.durationMs),
          output_bytes: told.result === undefined ? null : valueBytes(told.result),
          output_preview: told.result === undefined ? null : toJsonPreview(told.result, previewMaxChars),
          error_preview: toShort(told.error, previewMaxChars),
          tool_alias: alias,
        },
        scene,
        { tool },
      ),
    ],
    ...toReportedCall(
      {
        tool,
        alias,
        input: told.input,
        workingDirectory: told.directory,
        ...(parent === undefined ? {} : { parentSessionId: parent }),
      },
      scene,
    ),
  };
}

export const toolResult = hookRule(
  "after_tool",
  false,
  fields.toolResultFields,
  ({ bearing, metadata }, scene) =>
    toCompleted(
      bearing,
      {
        outcome: metadata["payload/outcome"] ?? "unknown",
        result: metadata["payload/result"],
        error: metadata["payload/error_type"],
        durationMs: metadata["payload/duration_ms"],
        input: metadata["payload/arguments"],
        directory: metadata["place/directory"],
      },
      scene,
    ),
);
export const interceptedResult = hookRule(
  "after_tool",
  false,
  fields.interceptedResultFields,
  ({ bearing, metadata }, scene) => {
    const result = metadata["payload/tool_result"];
    const isError = result?.is_error;
    return toCompleted(
      bearing,
      {
        outcome: isError === undefined ? "unknown" : isError ? "failed" : "succeeded",
        result: result?.["value"],
        error: undefined,
        durationMs: undefined,
        input: metadata["payload/tool_call/args"],
        directory: metadata["place/directory"],
      },
      scene,
    );
  },
);
