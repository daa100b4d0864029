import type { LifecycleSignal } from "../../../schemas/generated/types.ts";
import type { NestedEvent } from "../../platform/nested-hook.ts";
import { loadedRule, signalRule } from "../../platform/plugin-events.ts";
import { identity } from "./payloads.ts";
import * as session from "./session-events.ts";
import * as tool from "./tool-events.ts";

const open = ["place", "payload"];
const ofInstance = { sessionId: "place/instance" };
const inSession = { sessionId: "place/session" };
const inTurn = { ...inSession, turnId: "place/turn" };
const inCall = { ...inTurn, toolCallId: "place/call" };

/** A hook that the plugin leaves alone: others tell the same, or it holds whole requests and histories. */
const leftAlone = (name: string, kind: LifecycleSignal = "unknown"): readonly [string, NestedEvent] => [
  name,
  {
    open: ["place"],
    ids: ofInstance,
    rule: signalRule(name.replace(/\W/g, "_"), kind, {
      session: ofInstance.sessionId,
      identity,
      left: [...["directory", "session", "turn", "call"].map((one) => `place/${one}`), "payload"],
    }),
  },
];

/** Every hook of the client that is known, by its name. */
export const events: ReadonlyMap<string, NestedEvent> = new Map<string, NestedEvent>([
  ["plugin.loaded", { rule: loadedRule, open: ["place", "plugin"], ids: ofInstance }],
  ["pre_tool_call", { rule: tool.toolCall, open, ids: inCall }],
  ["post_tool_call", { rule: tool.toolResult, open, ids: inCall }],
  ["on_session_start", { rule: session.sessionStart, open, ids: inSession }],
  ["on_session_reset", { rule: session.sessionStart, open, ids: inSession }],
  ["on_session_end", { rule: session.turnEnd, open, ids: inTurn }],
  ["on_session_finalize", { rule: session.sessionEnd, open, ids: inSession }],
  ["pre_llm_call", { rule: session.prompt, open, ids: inTurn }],
  ["post_api_request", { rule: session.modelCall, open, ids: inTurn }],
  ["api_request_error", { rule: session.modelCall, open, ids: inTurn }],
  ["pre_approval_request", { rule: tool.approvalAsked, open, ids: inCall }],
  ["post_approval_response", { rule: tool.approvalAnswered, open, ids: inCall }],
  ["subagent_start", { rule: session.childStart, open, ids: inTurn }],
  ["subagent_stop", { rule: session.childStop, open, ids: inTurn }],
  leftAlone("pre_api_request", "model_requested"),
  leftAlone("post_llm_call"),
  leftAlone("pre_verify"),
  leftAlone("transform_llm_output"),
  leftAlone("transform_terminal_output"),
  leftAlone("transform_tool_result"),
  leftAlone("pre_gateway_dispatch"),
  ...["blocked", "claimed", "completed"].map((name) => leftAlone(`kanban_task_${name}`)),
  ...["llm_execution", "llm_request", "tool_execution", "tool_request"].map((name) =>
    leftAlone(`middleware.${name}`),
  ),
  ...["approval_request", "approval_responded"].map((name) => leftAlone(`api_server.${name}`)),
  ...["agent_end", "agent_start", "agent_step", "command_new", "command_status", "gateway_startup"].map(
    (name) => leftAlone(`gateway.${name}`),
  ),
  ...["session_end", "session_reset", "session_start"].map((name) => leftAlone(`gateway.${name}`)),
]);
