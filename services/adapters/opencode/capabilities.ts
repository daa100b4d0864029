import type { EventCapability, RuntimeCapabilities } from "../../platform/runtime-capabilities.ts";
import { documented, observed, unknownCell } from "../../platform/runtime-capabilities.ts";
import { events } from "./events.ts";

const no = observed("no");
const closed = observed("closed", "an exception of the hook is the exception of what it stands before");
const waits = observed("open", "the client waits for ever; the plugin races its own deadline and refuses");

/** An event of the client's bus: told, and never waited for. */
const told: EventCapability = {
  moment: "lifecycle",
  canBlock: no,
  canModify: no,
  canAsk: no,
  canAddContext: no,
  canReplaceResult: no,
  awaited: no,
  onCrash: observed("open", "an unhandled rejection is printed, and the run goes on"),
  onTimeout: observed("open"),
  onGarbage: observed("open"),
  stableIds: [],
};
/** A hook that the client awaits, one plugin after the other. */
const hook = (differences: Partial<EventCapability>): EventCapability => ({
  ...told,
  awaited: observed("yes"),
  onCrash: closed,
  onTimeout: waits,
  onGarbage: unknownCell,
  ...differences,
});
const session = ["input/sessionID", "place/turn"];
const call = [...session, "input/callID"];
const prompt = {
  canBlock: observed("yes", "by an exception: the prompt fails, and no model is called"),
} as const;

const own: Readonly<Record<string, EventCapability>> = {
  "tool.execute.before": hook({
    moment: "before_effect",
    canBlock: observed("yes", "by an exception, whose message the model reads"),
    canModify: observed("yes", "in place; another object has no effect"),
    canAsk: observed("no", "only by keeping the call waiting, which --wait does"),
    onGarbage: observed("closed", "what the plugin does not understand it refuses"),
    stableIds: call,
  }),
  "tool.execute.after": hook({
    moment: "after_effect",
    canBlock: observed("no", "the tool ran; it is not called when a tool failed or was refused"),
    canReplaceResult: observed("yes", "in place"),
    onCrash: observed("no_action", "the model sees an error in place of the result"),
    stableIds: call,
  }),
  "shell.env": hook({
    moment: "before_effect",
    canBlock: observed("yes", "by an exception"),
    canModify: observed("conditional", "the environment alone; the command is not told"),
    stableIds: ["input/sessionID"],
  }),
  "chat.message": hook({
    ...prompt,
    canModify: observed("yes"),
    canAddContext: observed("yes"),
    stableIds: session,
  }),
  "chat.params": hook({ ...prompt, canModify: observed("yes"), stableIds: ["input/sessionID"] }),
  "chat.headers": hook({ ...prompt, canModify: observed("yes"), stableIds: ["input/sessionID"] }),
  "tool.definition": hook({ ...prompt, canModify: observed("yes") }),
  "command.execute.before": hook({ ...prompt, canModify: observed("yes"), stableIds: ["input/sessionID"] }),
  "experimental.chat.messages.transform": hook({
    canBlock: unknownCell,
    canModify: observed("yes"),
    onCrash: unknownCell,
  }),
  "experimental.chat.system.transform": hook({
    canBlock: unknownCell,
    canModify: observed("yes"),
    onCrash: unknownCell,
    stableIds: ["input/sessionID"],
  }),
  "experimental.text.complete": hook({
    canBlock: no,
    canReplaceResult: observed("yes"),
    onCrash: observed("closed", "the run ends"),
    stableIds: ["input/sessionID"],
  }),
  "experimental.session.compacting": hook({
    canBlock: unknownCell,
    canModify: documented("yes"),
    onCrash: unknownCell,
    stableIds: ["input/sessionID"],
  }),
  config: hook({ onCrash: observed("open", "logged, and the client goes on") }),
  "plugin.init": hook({
    onCrash: observed("open", "tools run unguarded: the plugin never throws while it loads"),
    stableIds: ["place/instance"],
  }),
  dispose: hook({ onCrash: documented("open"), stableIds: ["place/instance"] }),
  "event.permission.asked": {
    ...told,
    moment: "before_effect",
    canAsk: observed("conditional", "a client of the server can answer; a plugin is not waited for"),
    stableIds: ["input/event/properties/sessionID"],
  },
};

/** What OpenCode's plugin hooks can do, and what becomes of the action when one fails. */
export const capabilities: RuntimeCapabilities = {
  runtime: "opencode",
  clientVersion: "1.18.33",
  recordedOn: "2026-11-30",
  hooksOfOneEvent: observed("serial", "parallel calls overlap"),
  exceptionPropagates: observed("yes", "the plugins after it are not called"),
  effectRecoverable: no,
  lostEventsReplayable: observed("no", "the plugin keeps what it could not report in a bounded spool"),
  blindSpots: [
    "a plugin that is not found, does not parse or throws while it loads is skipped, and tools run unguarded",
    "--pure and OPENCODE_PURE drop every plugin",
    "a person's own shell and terminals fire shell.env alone: the command is not told",
    "a plugin after this one may change the input again; the result shows what ran",
    "permission.ask is in the published types and is never called",
    "the model call that makes a session's title shows in no event",
  ],
  events: Object.fromEntries([...events.keys()].map((name) => [name, own[name] ?? told])),
};
