import type { EventCapability, RuntimeCapabilities } from "../../platform/runtime-capabilities.ts";
import { documented, observed, unknownCell } from "../../platform/runtime-capabilities.ts";
import { events } from "./events.ts";

const no = observed("no");
const told: EventCapability = {
  moment: "lifecycle",
  canBlock: documented("no"),
  canModify: documented("no"),
  canAsk: documented("no"),
  canAddContext: documented("no"),
  canReplaceResult: documented("no"),
  awaited: observed("yes"),
  onCrash: observed("open", "a warning in a log"),
  onTimeout: observed("open", "there is none: the client waits"),
  onGarbage: documented("open"),
  stableIds: [],
};
const hook = (differences: Partial<EventCapability>): EventCapability => ({ ...told, ...differences });
const session = ["place/session"];
const call = [...session, "place/call"];
const open = observed("open", "the plugin catches everything and says no in words");

const own: Readonly<Record<string, EventCapability>> = {
  pre_tool_call: hook({
    moment: "before_effect",
    canBlock: observed("yes", "block with a message that is not empty; also by shell hook"),
    canModify: observed("conditional", "in place, undocumented; a shell hook cannot"),
    canAsk: observed(
      "conditional",
      "approve, by plugin alone; -z and --yolo answer it with yes, so ours gives a ticket, or waits",
    ),
    onCrash: open,
    onTimeout: observed("open", "none for plugins: ours has its own; shell hooks run on after theirs"),
    onGarbage: open,
    stableIds: call,
  }),
  post_tool_call: hook({
    moment: "after_effect",
    canBlock: observed("no", "sent for a blocked call too; its arguments may not be what ran"),
    stableIds: call,
  }),
  transform_tool_result: hook({ moment: "after_effect", canReplaceResult: observed("yes") }),
  transform_terminal_output: hook({ moment: "after_effect", canReplaceResult: observed("yes") }),
  pre_llm_call: hook({ canBlock: no, canAddContext: observed("yes"), stableIds: session }),
  pre_verify: hook({ canBlock: observed("conditional", "keeps the turn going, three times at most") }),
  pre_gateway_dispatch: hook({ canBlock: observed("yes", "skip"), canModify: observed("yes", "rewrite") }),
  "middleware.tool_execution": hook({
    moment: "before_effect",
    canBlock: observed("yes", "by not calling on; an exception before that runs the tool"),
    canModify: observed("yes", "after the hooks: post_tool_call still shows the original"),
    onCrash: open,
  }),
  "middleware.tool_request": hook({ moment: "before_effect", canModify: observed("yes") }),
  "middleware.llm_request": hook({ canModify: observed("yes") }),
  "middleware.llm_execution": hook({ canBlock: documented("yes") }),
  "gateway.command_new": hook({ canBlock: observed("yes", "of the command alone") }),
  on_session_start: hook({ stableIds: session }),
  on_session_end: hook({ stableIds: [...session, "place/turn"] }),
  post_api_request: hook({ stableIds: [...session, "payload/api_request_id"] }),
  "plugin.loaded": hook({ onCrash: observed("open", "register that raises: tools run unguarded") }),
};

/** What Hermes' plugin hooks can do, and what becomes of the action when one fails. */
export const capabilities: RuntimeCapabilities = {
  runtime: "hermes",
  clientVersion: "0.19.0",
  recordedOn: "2026-11-30",
  hooksOfOneEvent: observed("serial", "all run; the first block wins, plugins before shell hooks"),
  exceptionPropagates: observed("no"),
  effectRecoverable: no,
  lostEventsReplayable: observed("no", "the plugin keeps what it could not report in a bounded spool"),
  blindSpots: [
    "a plugin that is not enabled, or whose register raises, is skipped, and tools run unguarded; --safe-mode drops all",
    "middleware of another plugin may change the arguments after they were judged; ours compares them once more",
    "execute_code runs a program: its tool calls pass the hooks, what else it does passes none",
    "the terminal keeps its folder from call to call: a relative path may mean another folder than the one that was judged",
    "shell hooks: no consent, a crash, exit code 2 or a timeout, and the tool runs",
    "an answer of the model that is no JSON fires no tool hook, and runs nothing",
  ],
  events: Object.fromEntries(
    [...events.keys()].map((name) => [name, own[name] ?? { ...told, awaited: unknownCell }]),
  ),
};
