import type { LifecycleSignal } from "../../../schemas/generated/types.ts";
import type { NestedEvent } from "../../platform/nested-hook.ts";
import { loadedRule, signalRule } from "../../platform/plugin-events.ts";
import { everywhere, identity } from "./payloads.ts";
import * as session from "./session-events.ts";
import * as tool from "./tool-events.ts";

const open = ["place", "event", "ctx"];
const ofInstance = { sessionId: "place/instance" };
const inSession = { sessionId: "ctx/sessionId" };
const inRun = { ...inSession, turnId: "ctx/runId" };
const inCall = { ...inSession, turnId: "event/runId", toolCallId: "event/toolCallId" };
const inModelCall = { sessionId: "event/sessionId", turnId: "event/runId" };

/** A hook that is recorded as a signal of its session, or of the process where it names none. */
const told = (
  phase: string,
  kind: LifecycleSignal,
  ids: NestedEvent["ids"],
  left: readonly string[],
): NestedEvent => ({
  open,
  ids,
  rule: signalRule(phase, kind, {
    session: ids.sessionId ?? ofInstance.sessionId,
    identity,
    left: [...everywhere, ...left.map((name) => `event/${name}`)],
  }),
});
/** A hook that the plugin leaves alone: others tell the same, or it would hold or hand out too much. */
const leftAlone = (name: string, kind: LifecycleSignal = "unknown"): readonly [string, NestedEvent] => [
  name,
  {
    open: ["place"],
    ids: ofInstance,
    rule: signalRule(name.replace(/\W/g, "_"), kind, {
      session: ofInstance.sessionId,
      identity,
      left: ["place/directory", "event", "ctx"],
    }),
  },
];

/** Every hook of the client that is known, by its name. */
export const events: ReadonlyMap<string, NestedEvent> = new Map<string, NestedEvent>([
  ["plugin.loaded", { rule: loadedRule, open: ["place", "plugin"], ids: ofInstance }],
  ["before_tool_call", { rule: tool.toolCall, open, ids: inCall }],
  ["after_tool_call", { rule: tool.toolResult, open, ids: inCall }],
  ["before_agent_run", { rule: session.run, open, ids: inRun }],
  ["agent_end", { rule: session.runEnd, open, ids: inRun }],
  ["model_call_started", { rule: session.modelRequest, open, ids: inModelCall }],
  ["model_call_ended", { rule: session.modelCall, open: [...open, "message"], ids: inModelCall }],
  ["session_start", { rule: session.sessionStart, open, ids: inSession }],
  ["session_end", { rule: session.sessionEnd, open, ids: inSession }],
  [
    "before_compaction",
    told("before_compaction", "compaction_requested", inSession, ["messageCount", "tokenCount"]),
  ],
  ["after_compaction", { rule: session.compacted, open, ids: inSession }],
  ["before_reset", told("before_reset", "unknown", inSession, ["sessionFile", "messages", "reason"])],
  ["subagent_spawned", { rule: session.spawned, open, ids: { sessionId: "ctx/requesterSessionKey" } }],
  ["subagent_ended", { rule: session.childEnded, open, ids: { sessionId: "event/targetSessionKey" } }],
  ["message_received", { rule: session.message, open, ids: { sessionId: "event/sessionKey" } }],
  ["gateway_start", told("gateway_start", "setup_ran", ofInstance, ["port"])],
  ["gateway_stop", told("gateway_stop", "hooks_unloaded", ofInstance, ["reason"])],
  leftAlone("agent_turn_prepare"),
  leftAlone("before_agent_finalize"),
  leftAlone("before_agent_reply"),
  leftAlone("before_dispatch"),
  leftAlone("before_message_write"),
  leftAlone("before_model_resolve"),
  leftAlone("before_prompt_build"),
  leftAlone("cron_changed"),
  leftAlone("cron_reconciled"),
  leftAlone("llm_input", "model_requested"),
  leftAlone("llm_output"),
  leftAlone("message_sending"),
  leftAlone("reply_dispatch"),
  leftAlone("reply_payload_sending"),
  leftAlone("resolve_exec_env"),
  leftAlone("subagent_delivery_target"),
  leftAlone("subagent_progress"),
  leftAlone("tool_result_persist"),
  leftAlone("onResolution", "input_answered"),
  leftAlone("gateway.plugin.approval", "input_requested"),
  ...[
    ...["agent_bootstrap", "command_new", "command_reset", "gateway_shutdown", "gateway_startup"],
    ...["message_preprocessed", "message_received", "session_compact_after", "session_compact_before"],
    "session_patch",
  ].map((name) => leftAlone(`internal.${name}`)),
]);
