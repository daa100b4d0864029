import type { LifecycleSignal } from "../../../schemas/generated/types.ts";
import type { NestedEvent } from "../../platform/nested-hook.ts";
import { loadedRule, signalRule } from "../../platform/plugin-events.ts";
import { identity } from "./payloads.ts";
import * as session from "./session-events.ts";
import * as tool from "./tool-events.ts";

const open = ["place", "payload"];
const openCall = [...open, "payload/tool_call"];
const ofInstance = { sessionId: "place/instance" };
const inSession = { sessionId: "place/session" };
const inTurn = { ...inSession, turnId: "place/turn" };
const inCall = { ...inTurn, toolCallId: "place/call" };

/** A step that others tell of, or that holds whole histories. */
const leftAlone = (name: string, kind: LifecycleSignal = "unknown"): readonly [string, NestedEvent] => [
  name,
  {
    open: ["place"],
    ids: ofInstance,
    rule: signalRule(name.replace(/\W/g, "_"), kind, {
      session: ofInstance.sessionId,
      identity,
      left: [
        ...["directory", "session", "turn", "call", "tool_name", "fabric_tool"].map((one) => `place/${one}`),
        "payload",
      ],
    }),
  },
];

/** Every step of the framework that is known, by its name. */
export const events: ReadonlyMap<string, NestedEvent> = new Map<string, NestedEvent>([
  ["plugin.loaded", { rule: loadedRule, open: ["place", "plugin"], ids: ofInstance }],
  ["function.before", { rule: tool.toolCall, open, ids: inCall }],
  ["function.after", { rule: tool.toolResult, open, ids: inCall }],
  ["agent_run.before", { rule: session.run, open, ids: inTurn }],
  ["agent_run.after", { rule: session.runEnd, open, ids: inTurn }],
  ["chat.after", { rule: session.modelCall, open, ids: inTurn }],
  ["session.start", { rule: session.startup, open, ids: inSession }],
  ["agent_hooks.agent_startup", { rule: session.startup, open, ids: inSession }],
  ["agent_hooks.input", { rule: session.input, open, ids: inTurn }],
  ["agent_hooks.pre_tool_call", { rule: tool.interceptedCall, open: openCall, ids: inCall }],
  ["agent_hooks.post_tool_call", { rule: tool.interceptedResult, open: openCall, ids: inCall }],
  ["agent_hooks.post_model_call", { rule: session.interceptedModelCall, open, ids: inTurn }],
  ["agent_hooks.agent_shutdown", { rule: session.shutdown, open, ids: inSession }],
  leftAlone("agent_hooks.pre_model_call", "model_requested"),
  leftAlone("agent_hooks.output"),
  leftAlone("agent_hooks.approval_request", "input_requested"),
  leftAlone("agent_hooks_record"),
  leftAlone("agent_run.error"),
  leftAlone("chat.before", "model_requested"),
  leftAlone("function.error"),
  leftAlone("approval.request", "input_requested"),
  leftAlone("approval.request_json", "input_requested"),
  leftAlone("approval.response", "input_answered"),
  leftAlone("tool_approval.auto_rule", "input_answered"),
]);
