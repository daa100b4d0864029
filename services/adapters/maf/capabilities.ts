import type { EventCapability, RuntimeCapabilities } from "../../platform/runtime-capabilities.ts";
import { documented, observed, unknownCell } from "../../platform/runtime-capabilities.ts";
import { events } from "./events.ts";

const no = observed("no");
const told: EventCapability = {
  moment: "lifecycle",
  canBlock: unknownCell,
  canModify: unknownCell,
  canAsk: documented("no"),
  canAddContext: unknownCell,
  canReplaceResult: unknownCell,
  awaited: observed("yes"),
  onCrash: unknownCell,
  onTimeout: unknownCell,
  onGarbage: unknownCell,
  stableIds: [],
};
const step = (differences: Partial<EventCapability>): EventCapability => ({ ...told, ...differences });
const session = ["place/session"];
const call = [...session, "place/call"];
const noLimit = observed("open", "there is none: ours has its own, in a thread of its own");

const own: Readonly<Record<string, EventCapability>> = {
  "function.before": step({
    moment: "before_effect",
    canBlock: observed("yes", "by a result without calling on; MiddlewareFailure ends the run"),
    canModify: observed("yes", "validated again"),
    canAsk: observed(
      "yes",
      'by approval content, where the middleware is made with approvals="content": the gate is asked again after the answer',
    ),
    onCrash: observed("closed", "the tool does not run, and the model reads of a failing tool"),
    onTimeout: noLimit,
    onGarbage: observed("closed", "what the middleware does not understand it refuses"),
    stableIds: call,
  }),
  "function.after": step({
    moment: "after_effect",
    canBlock: no,
    canReplaceResult: observed("yes"),
    onCrash: observed("no_action", "the model reads an error in place of the result"),
    stableIds: call,
  }),
  "agent_run.before": step({
    canBlock: observed("yes"),
    onCrash: observed("closed", "it reaches the caller"),
    onTimeout: noLimit,
    stableIds: [...session, "place/turn"],
  }),
  "agent_run.after": step({
    canReplaceResult: observed("conditional", "not of a stream: nothing has happened yet"),
    stableIds: [...session, "place/turn"],
  }),
  "chat.before": step({ canBlock: observed("yes"), canModify: observed("yes") }),
  "chat.after": step({
    canReplaceResult: documented("yes"),
    onCrash: observed("closed"),
    stableIds: session,
  }),
  "agent_hooks.pre_tool_call": step({
    moment: "before_effect",
    canBlock: observed("yes"),
    canModify: observed("yes", "transform at $target"),
    canAsk: observed("conditional", "a liftable deny, where the host has a resolver"),
    onCrash: observed("closed", "the run ends"),
    onTimeout: observed("closed", "but an interceptor that blocks the loop defeats it: ours never does"),
    onGarbage: observed("closed", "the run ends"),
    stableIds: call,
  }),
  "agent_hooks.post_tool_call": step({
    moment: "after_effect",
    canBlock: no,
    canReplaceResult: observed("yes"),
    stableIds: call,
  }),
};

/** What middleware of Microsoft Agent Framework can do, and what becomes of the action when it fails. */
export const capabilities: RuntimeCapabilities = {
  runtime: "maf",
  clientVersion: "1.23.0",
  recordedOn: "2026-11-30",
  hooksOfOneEvent: observed("serial", "onion order; calls of one model turn are concurrent"),
  exceptionPropagates: observed("conditional", "not from function middleware: MiddlewareFailure does"),
  effectRecoverable: no,
  lostEventsReplayable: observed("no", "the middleware keeps what it could not report in a bounded spool"),
  blindSpots: [
    "a tool that is invoked directly runs no middleware",
    "tools that the provider hosts never reach function middleware",
    "function middleware runs only after the framework's own approval",
    "middleware inside ours may change the arguments after they were judged; the result shows what ran",
    "a stream that is abandoned: its end, and what its last model call used, is not seen",
    "the .NET form is not covered",
  ],
  events: Object.fromEntries([...events.keys()].map((name) => [name, own[name] ?? told])),
};
