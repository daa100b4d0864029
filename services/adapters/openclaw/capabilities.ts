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
  awaited: documented("no"),
  onCrash: documented("open", "logged, and the run goes on"),
  onTimeout: documented("open"),
  onGarbage: unknownCell,
  stableIds: [],
};
const hook = (differences: Partial<EventCapability>): EventCapability => ({ ...told, ...differences });
const call = ["ctx/sessionId", "event/runId", "event/toolCallId"];
const inFront = { moment: "before_effect", awaited: observed("yes") } as const;

const own: Readonly<Record<string, EventCapability>> = {
  before_tool_call: hook({
    ...inFront,
    canBlock: observed("yes", "block with blockReason, which the model reads"),
    canModify: observed("yes", "by return, laid over the original; not validated again"),
    canAsk: observed(
      "conditional",
      "requireApproval, in a gateway with a client that takes approvals: used for rules that the user may answer, else a ticket",
    ),
    onCrash: observed("closed"),
    onTimeout: observed("closed", "15 s, or what the configuration says"),
    onGarbage: observed("closed", "what the plugin does not understand it refuses"),
    stableIds: call,
  }),
  after_tool_call: hook({
    moment: "after_effect",
    canBlock: observed("no", "sent always: also for a failed and for a blocked call"),
    canModify: no,
    canReplaceResult: no,
    onCrash: observed("open"),
    onTimeout: observed("open"),
    stableIds: call,
  }),
  resolve_exec_env: hook({
    ...inFront,
    canModify: observed("conditional", "the environment, without PATH and loader variables"),
    onCrash: observed("open", "the command ran without the variable"),
    onTimeout: unknownCell,
  }),
  before_agent_run: hook({
    ...inFront,
    canBlock: observed("yes", "outcome block: no model call"),
    onCrash: observed("closed"),
    onTimeout: documented("closed", "15 s"),
    stableIds: ["ctx/sessionId", "ctx/runId"],
  }),
  agent_end: hook({ stableIds: ["ctx/sessionId", "ctx/runId"] }),
  before_agent_reply: hook({
    ...inFront,
    canBlock: observed("yes", "by claiming the reply"),
    onTimeout: documented("open", "no limit"),
  }),
  before_dispatch: hook({
    ...inFront,
    canBlock: observed("yes", "by claiming the message"),
    onCrash: observed("open"),
  }),
  before_prompt_build: hook({
    ...inFront,
    canModify: documented("yes"),
    canAddContext: documented("yes"),
    onCrash: observed("open"),
  }),
  tool_result_persist: hook({
    moment: "after_effect",
    canReplaceResult: observed(
      "conditional",
      "in the transcript; the model read the original in the same run",
    ),
  }),
  before_message_write: hook({ canBlock: observed("conditional", "the write alone; the tool still ran") }),
  model_call_started: hook({ stableIds: ["event/sessionId", "event/runId"] }),
  model_call_ended: hook({
    onCrash: observed("open"),
    stableIds: ["event/sessionId", "event/runId", "event/callId"],
  }),
  session_start: hook({ stableIds: ["ctx/sessionId"] }),
  session_end: hook({ stableIds: ["ctx/sessionId"] }),
  "plugin.loaded": hook({ onCrash: observed("open", "a gateway starts and runs tools unguarded") }),
};

/** What OpenClaw's typed plugin hooks can do, and what becomes of the action when one fails. */
export const capabilities: RuntimeCapabilities = {
  runtime: "openclaw",
  clientVersion: "2026.9.6",
  recordedOn: "2026-11-30",
  hooksOfOneEvent: observed("serial", "by priority, then by registration; parallel calls overlap"),
  exceptionPropagates: observed("no", "in front of a tool it blocks the call"),
  effectRecoverable: no,
  lostEventsReplayable: observed("no", "the plugin keeps what it could not report in a bounded spool"),
  blindSpots: [
    "a gateway whose plugin does not load starts all the same and runs tools unguarded; a missing path says nothing",
    "changed parameters are not validated again: a tool may crash on them",
    "of two plugins that change a call, the last one wins, and neither sees what the other made of it",
    "calls of unknown tools and of invalid input are never asked about: they do not run either",
    "internal hooks observe only, and only in a gateway",
    "without conversation access the hooks of prompts and runs are missing in silence",
  ],
  events: Object.fromEntries([...events.keys()].map((name) => [name, own[name] ?? told])),
};
