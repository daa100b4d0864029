import type { LifecycleSignal } from "../../../schemas/generated/types.ts";
import type { NestedEvent } from "../../platform/nested-hook.ts";
import { signalRule } from "../../platform/plugin-events.ts";
import { identity } from "./payloads.ts";
import * as session from "./session-events.ts";
import * as tool from "./tool-events.ts";

const turnId = "place/turn";
const inHook = { sessionId: "input/sessionID", turnId };
const inCall = { ...inHook, toolCallId: "input/callID" };
const inEvent = { sessionId: "input/event/properties/sessionID", turnId };
const inPart = { ...inEvent, toolCallId: "input/event/properties/part/callID" };
const nowhere = { sessionId: "place/instance" };
const event = ["place", "input", "input/event", "input/event/properties"];
/** Left in every payload. */
const place = ["place/instance", "place/directory", "output"];
const info = [...event, "input/event/properties/info"];

/** An event of the client's bus that is recorded as a signal. */
const busSignal = (
  name: string,
  kind: LifecycleSignal,
  more: {
    readonly detail?: readonly string[];
    readonly path?: string;
    readonly left?: readonly string[];
    readonly isOfSession?: boolean;
  } = {},
): readonly [string, NestedEvent] => {
  const inProperties = (names: readonly string[]): readonly string[] =>
    names.map((one) => `input/event/properties/${one}`);
  const ids = more.isOfSession === false ? nowhere : inEvent;
  return [
    `event.${name}`,
    {
      open: event,
      ids,
      rule: signalRule(name.replace(/\W/g, "_"), kind, {
        session: ids.sessionId,
        detail: inProperties(more.detail ?? []),
        ...(more.path === undefined ? {} : { path: `input/event/properties/${more.path}` }),
        identity,
        left: [
          ...place,
          "input/event/id",
          "input/event/type",
          "input/event/properties",
          ...inProperties(more.left ?? []),
        ],
      }),
    },
  ];
};
/** A hook that the plugin leaves alone: it would delay or break the client's work, or hand it a key. */
const leftAlone = (
  name: string,
  kind: LifecycleSignal,
  more: {
    readonly session?: string;
    readonly detail?: readonly string[];
    readonly left?: readonly string[];
  } = {},
): readonly [string, NestedEvent] => {
  const { session: sessionId = nowhere.sessionId, detail = [], left = [] } = more;
  return [
    name,
    {
      open: ["place", "input"],
      ids: { sessionId, turnId },
      rule: signalRule(name.replace(/\W/g, "_"), kind, {
        session: sessionId,
        detail,
        identity,
        left: [...place, "input", ...left.map((one) => `input/${one}`)],
      }),
    },
  ];
};
const modelHook = ["agent", "model", "provider", "message"];

/** Every hook and event of the client that is known, by its name. */
export const events: ReadonlyMap<string, NestedEvent> = new Map<string, NestedEvent>([
  ["plugin.init", { rule: session.loaded, open: ["place", "plugin", "input"], ids: nowhere }],
  ["dispose", { rule: session.unloaded, open: ["place", "plugin"], ids: nowhere }],
  ["tool.execute.before", { rule: tool.toolCall, open: ["place", "input", "output"], ids: inCall }],
  ["tool.execute.after", { rule: tool.toolResult, open: ["place", "input", "output"], ids: inCall }],
  ["shell.env", { rule: tool.userShell, open: ["place", "input"], ids: inHook }],
  [
    "chat.message",
    { rule: session.prompt, open: ["place", "input", "output", "output/message"], ids: inHook },
  ],
  ["experimental.session.compacting", { rule: session.compacting, open: ["place", "input"], ids: inHook }],
  ["event.session.created", { rule: session.sessionCreated, open: info, ids: inEvent }],
  ["event.session.idle", { rule: session.idle, open: event, ids: inEvent }],
  ["event.session.error", { rule: session.failed, open: event, ids: inEvent }],
  ["event.session.compacted", { rule: session.compacted, open: event, ids: inEvent }],
  ["event.message.updated", { rule: session.message, open: info, ids: inEvent }],
  [
    "event.message.part.updated",
    { rule: tool.part, open: [...event, "input/event/properties/part"], ids: inPart },
  ],
  ["event.permission.asked", { rule: tool.permissionAsked, open: event, ids: inEvent }],
  ["event.permission.replied", { rule: tool.permissionReplied, open: event, ids: inEvent }],
  busSignal("session.updated", "unknown", { left: ["info"] }),
  busSignal("session.status", "notice_shown", { left: ["status"] }),
  busSignal("session.diff", "unknown", { left: ["diff"] }),
  busSignal("command.executed", "unknown", { detail: ["name"], left: ["arguments", "messageID"] }),
  busSignal("message.part.delta", "message_shown", {
    detail: ["delta"],
    left: ["messageID", "partID", "field"],
  }),
  busSignal("file.edited", "file_changed", { path: "file", isOfSession: false }),
  busSignal("file.watcher.updated", "file_changed", { detail: ["event"], path: "file", isOfSession: false }),
  busSignal("plugin.added", "unknown", { detail: ["id"], isOfSession: false }),
  busSignal("catalog.updated", "unknown", { isOfSession: false }),
  busSignal("integration.updated", "unknown", { isOfSession: false }),
  busSignal("reference.updated", "unknown", { isOfSession: false }),
  // A person's whole configuration: kept as evidence alone.
  [
    "config",
    {
      open: ["place"],
      ids: nowhere,
      rule: signalRule("config", "setup_ran", {
        session: nowhere.sessionId,
        identity,
        left: [...place, "input"],
      }),
    },
  ],
  leftAlone("tool.definition", "unknown", { detail: ["input/toolID"] }),
  leftAlone("chat.params", "model_requested", { session: inHook.sessionId, left: modelHook }),
  leftAlone("chat.headers", "model_requested", { session: inHook.sessionId, left: modelHook }),
  leftAlone("command.execute.before", "unknown", {
    session: inHook.sessionId,
    detail: ["input/command"],
    left: ["arguments"],
  }),
  leftAlone("experimental.chat.messages.transform", "unknown"),
  leftAlone("experimental.chat.system.transform", "model_requested", {
    session: inHook.sessionId,
    left: ["model"],
  }),
  leftAlone("experimental.text.complete", "message_shown", {
    session: inHook.sessionId,
    left: ["messageID", "partID"],
  }),
]);
