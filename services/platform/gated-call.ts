import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import { compact, effectOf, resolvePath, valueBytes } from "./adapter-kit.ts";
import type { Meaning, Scene } from "./hook-table.ts";
import { toObservation } from "./hook-table.ts";
import { toListedPaths, toPathText } from "./listed-paths.ts";
import { toJsonPreview } from "./masked-preview.ts";

const previewMaxChars = 512;
/** No more are resolved: events list as many. */
const namedPathsMax = 64;

/** A tool call that waits for an answer. */
export interface Call {
  /** Fabric tool name. */
  readonly tool: string;
  /** The runtime's own name. */
  readonly alias: string;
  /** As the runtime would run it, checked by `actionInputField`. */
  readonly input: Readonly<Record<string, unknown>>;
  readonly workingDirectory: string;
  /** The session that started this one, where the runtime gives a child agent a session of its own. */
  readonly parentSessionId?: string;
  /** The runtime can put its own dialog in front of this call, which only its user can answer. */
  readonly hasUserDialog?: boolean;
}

const toRequest = (phase: GateRequest["phase"], call: Call, { place, runtime }: Scene): GateRequest =>
  compact({
    runtime: runtime.kind,
    session_id: place.sessionId,
    parent_session_id: call.parentSessionId,
    turn_id: place.turnId,
    tool_call_id: place.toolCallId,
    agent_id: place.agentId,
    phase,
    tool: call.tool,
    tool_alias: call.alias,
    // By reference, unchanged: what the gate judges is what would run.
    input: call.input as JsonObject,
    working_directory: call.workingDirectory,
    permission_mode: runtime.permission_mode ?? undefined,
    user_dialog: call.hasUserDialog === true ? true : undefined,
  });

/** The call that a result repeats; nothing when it does not repeat its input in a form that can be judged. */
export const toReportedCall = (
  call: Pick<Call, "tool" | "alias" | "parentSessionId"> & {
    readonly input: Call["input"] | undefined;
    readonly workingDirectory: string | undefined;
  },
  { place, runtime }: Scene,
): Pick<Meaning, "reported"> =>
  call.input === undefined
    ? {}
    : {
        reported: compact({
          runtime: runtime.kind,
          session_id: place.sessionId,
          parent_session_id: call.parentSessionId,
          turn_id: place.turnId,
          tool_call_id: place.toolCallId,
          agent_id: place.agentId,
          phase: "before_tool",
          tool: call.tool,
          tool_alias: call.alias,
          input: call.input as JsonObject,
          working_directory: call.workingDirectory,
        }),
      };

/** A call before it runs: the intent and the question. `paths` are the files that the input names, as it spells them. */
export const toToolCall = (call: Call, callId: string, paths: readonly string[], scene: Scene): Meaning => ({
  observations: [
    toObservation(
      "agent.tool.requested",
      {
        effect_class: effectOf(call.tool),
        input_bytes: valueBytes(call.input) ?? 0,
        input_preview: toJsonPreview(call.input, previewMaxChars),
        paths: toListedPaths(
          paths.slice(0, namedPathsMax).map((path) => resolvePath(call.workingDirectory, path)),
        ),
        working_directory: toPathText(call.workingDirectory),
        tool_alias: call.alias,
      },
      scene,
      { notFrom: ["call"], anchor: { scope: "call", id: callId }, tool: call.tool },
    ),
  ],
  request: toRequest("before_tool", call, scene),
});

/** The runtime's own question whether a call may go on: the intent and the question. */
export const toPermissionQuestion = (call: Call, scene: Scene): Meaning => ({
  observations: [
    toObservation(
      "agent.permission.requested",
      {
        effect_class: effectOf(call.tool),
        input_preview: toJsonPreview(call.input, previewMaxChars),
        tool_alias: call.alias,
      },
      scene,
      { tool: call.tool },
    ),
  ],
  request: toRequest("permission", call, scene),
});
