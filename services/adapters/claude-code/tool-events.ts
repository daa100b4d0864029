import { toCount, toShort, valueBytes } from "../../platform/adapter-kit.ts";
import type { Call } from "../../platform/gated-call.ts";
import { toPermissionQuestion, toReportedCall, toToolCall } from "../../platform/gated-call.ts";
import type { Meaning, Scene } from "../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toJsonPreview } from "../../platform/masked-preview.ts";
import type { UnreadableField } from "../../platform/payload-fields.ts";
import { isJsonObject, sortNested } from "../../platform/payload-fields.ts";
import * as fields from "./payloads.ts";
import { toFabricTool, toNamedPaths } from "./tool-names.ts";

const previewMaxChars = 512;

const unnameable: UnreadableField = { ok: false, problem: "unknown_value", field: "/tool_name" };
const ofServer = (server: object | undefined): NonNullable<Meaning["nested"]> =>
  server === undefined ? [] : [sortNested("/mcp_server", server, ["name"], ["source"])];

/**
 * Modes in which the client's `ask` is answered by whoever sits there: seen to open the dialog, and to be a no where nobody
 * sits. The modes that were made for nobody (`bypassPermissions`, `dontAsk`) and new ones get a ticket.
 */
const attendedModes: ReadonlySet<string | null> = new Set(["default", "acceptEdits", "plan", "auto"]);

const toCall = (
  tool: string,
  read: {
    readonly tool_name: string;
    readonly tool_input: Readonly<Record<string, unknown>>;
    readonly cwd: string;
  },
  { runtime }: Scene,
): Call => ({
  tool,
  alias: read.tool_name,
  input: read.tool_input,
  workingDirectory: read.cwd,
  hasUserDialog: attendedModes.has(runtime.permission_mode),
});

export const toolCall = hookRule(
  "before_tool",
  true,
  fields.toolCallFields,
  ({ bearing, metadata }, scene) => {
    const tool = toFabricTool(bearing.tool_name, metadata.mcp_server?.name);
    if (tool === null) return unnameable;
    const paths = toNamedPaths(bearing.tool_name, bearing.tool_input);
    return {
      ...toToolCall(toCall(tool, bearing, scene), bearing.tool_use_id, paths, scene),
      nested: ofServer(metadata.mcp_server),
    };
  },
);
export const permission = hookRule(
  "permission",
  true,
  fields.permissionFields,
  ({ bearing, metadata }, scene) => {
    const tool = toFabricTool(bearing.tool_name, metadata.mcp_server?.name);
    if (tool === null) return unnameable;
    return {
      ...toPermissionQuestion(toCall(tool, bearing, scene), scene),
      nested: ofServer(metadata.mcp_server),
    };
  },
);
/** Sent when the client's own judge refuses, in its automatic and planning modes. */
export const refused = hookRule(
  "permission_refused",
  false,
  fields.refusedFields,
  ({ bearing, metadata }, scene) => {
    const tool = toFabricTool(bearing.tool_name, metadata.mcp_server?.name);
    if (tool === null) return unnameable;
    const reason = toShort(metadata.reason, previewMaxChars);
    return observe(
      toObservation(
        "agent.permission.refused",
        { refused_by: "runtime", reason, tool_alias: bearing.tool_name },
        scene,
        { tool },
      ),
      ofServer(metadata.mcp_server),
    );
  },
);

const toReported = (
  tool: string,
  alias: string,
  metadata: { readonly tool_input?: Readonly<Record<string, unknown>>; readonly cwd?: string },
  scene: Scene,
): Pick<Meaning, "reported"> =>
  toReportedCall({ tool, alias, input: metadata.tool_input, workingDirectory: metadata.cwd }, scene);

export const toolResult = hookRule(
  "after_tool",
  false,
  fields.toolResultFields,
  ({ bearing, metadata }, scene) => {
    const tool = toFabricTool(bearing.tool_name, metadata.mcp_server?.name);
    if (tool === null) return unnameable;
    const response = metadata.tool_response;
    const isInterrupted =
      isJsonObject(response) && Object.hasOwn(response, "interrupted") && response["interrupted"] === true;
    return {
      ...observe(
        toObservation(
          "agent.tool.completed",
          {
            // This event comes only after a success; a failure has an event of its own.
            outcome: isInterrupted ? "interrupted" : "succeeded",
            duration_ms: toCount(metadata.duration_ms),
            output_bytes: response === undefined ? null : valueBytes(response),
            output_preview: response === undefined ? null : toJsonPreview(response, previewMaxChars),
            error_preview: null,
            tool_alias: bearing.tool_name,
          },
          scene,
          { tool },
        ),
        ofServer(metadata.mcp_server),
      ),
      ...toReported(tool, bearing.tool_name, metadata, scene),
    };
  },
);
export const toolFailure = hookRule(
  "after_tool_failure",
  false,
  fields.toolFailureFields,
  ({ bearing, metadata }, scene) => {
    const tool = toFabricTool(bearing.tool_name, metadata.mcp_server?.name);
    if (tool === null) return unnameable;
    return {
      ...observe(
        toObservation(
          "agent.tool.completed",
          {
            outcome: metadata.is_interrupt === true ? "interrupted" : "failed",
            duration_ms: toCount(metadata.duration_ms),
            output_bytes: null,
            output_preview: null,
            error_preview: toShort(metadata.error, previewMaxChars),
            tool_alias: bearing.tool_name,
          },
          scene,
          { tool },
        ),
        ofServer(metadata.mcp_server),
      ),
      ...toReported(tool, bearing.tool_name, metadata, scene),
    };
  },
);
