import type {
  Cell,
  EventCapability,
  Power,
  RuntimeCapabilities,
} from "../../platform/runtime-capabilities.ts";
import { documented, observed, unknownCell } from "../../platform/runtime-capabilities.ts";

const no = observed("no");
/** The client's own output schema for the event has no field for it. */
const noField = documented("no");
const awaited: Cell<Power> = observed("yes");
const unknownFailure = { onCrash: unknownCell, onTimeout: unknownCell, onGarbage: unknownCell };
const turnIds = ["session_id", "turn_id"];
const callIds = [...turnIds, "tool_use_id", "agent_id"];

const none: EventCapability = {
  moment: "lifecycle",
  canBlock: unknownCell,
  canModify: noField,
  canAsk: noField,
  canAddContext: noField,
  canReplaceResult: noField,
  awaited: unknownCell,
  ...unknownFailure,
  stableIds: turnIds,
};
const event = (differences: Partial<EventCapability>): EventCapability => ({ ...none, ...differences });
const alwaysOpen = observed("open", "there is no setting that closes it: the shim has to");

/** What Codex's hooks can do, and what becomes of the action when one fails. */
export const capabilities: RuntimeCapabilities = {
  runtime: "codex",
  clientVersion: "0.169.0",
  recordedOn: "2026-11-30",
  hooksOfOneEvent: observed("concurrent", "all are awaited; any deny wins"),
  exceptionPropagates: observed("no"),
  effectRecoverable: observed("no"),
  lostEventsReplayable: documented("no"),
  blindSpots: [
    "write_stdin sends no event: text typed into a running shell passes unseen",
    "a hook that is not trusted by its content hash is skipped in silence",
    "no after event for a tool server's error, a failed patch, a failed image view, a patch through the shell",
    "a denial with an unknown key, suppressOutput, or no reason is dropped, and the tool runs",
    "plain exec never asks for permission",
  ],
  events: {
    PreToolUse: event({
      moment: "before_effect",
      canBlock: observed(
        "yes",
        "JSON deny with a reason and no other key, or exit 2 with a text on standard error",
      ),
      canModify: observed(
        "conditional",
        "with permissionDecision allow; seen for Bash, apply_patch and tool servers",
      ),
      canAsk: observed(
        "no",
        "ask and defer let the tool run: a ticket, or with --wait the hook holds the call",
      ),
      canAddContext: documented("yes"),
      awaited,
      onCrash: alwaysOpen,
      onTimeout: alwaysOpen,
      onGarbage: alwaysOpen,
      stableIds: callIds,
    }),
    PermissionRequest: event({
      moment: "before_effect",
      canBlock: observed("yes"),
      canModify: observed("no", "a changed input fails the hook, and the user is asked"),
      canAsk: observed("no", "it answers the question"),
      awaited,
      onCrash: observed("open", "the user is asked"),
      onTimeout: observed("open", "the user is asked"),
      onGarbage: unknownCell,
      stableIds: turnIds,
    }),
    PostToolUse: event({
      moment: "after_effect",
      canBlock: observed("no", "the tool ran"),
      canAddContext: observed("yes"),
      canReplaceResult: observed("conditional", "a block replaces what the model sees by its reason"),
      awaited,
      onCrash: observed("open"),
      onTimeout: observed("open"),
      onGarbage: observed("open"),
      stableIds: callIds,
    }),
    UserPromptSubmit: event({
      canBlock: observed("yes"),
      canAddContext: observed("yes", "plain standard output becomes context"),
      awaited,
      onCrash: observed("open"),
      onTimeout: observed("open"),
      onGarbage: observed("open", "plain text becomes context"),
    }),
    SessionStart: event({
      canBlock: observed("conditional", "continue:false stops the turn; exit 2 is ignored"),
      canAddContext: observed("yes"),
      awaited,
      onCrash: observed("open"),
      onTimeout: observed("open"),
      onGarbage: observed("open"),
      stableIds: ["session_id"],
    }),
    SessionEnd: event({ canBlock: noField, stableIds: ["session_id"] }),
    Stop: event({ canBlock: observed("conditional", "keeps the agent going"), awaited }),
    Interrupt: event({ canBlock: noField }),
    SubagentStart: event({
      canBlock: no,
      canAddContext: documented("yes"),
      stableIds: [...turnIds, "agent_id"],
    }),
    SubagentStop: event({
      canBlock: observed("conditional", "keeps the child agent going"),
      awaited,
      stableIds: [...turnIds, "agent_id"],
    }),
    PreCompact: event({ canBlock: observed("yes", "continue:false ends the turn"), awaited }),
    PostCompact: event({ canBlock: documented("conditional", "continue:false") }),
    PreModelRequest: event({
      canBlock: no,
      canModify: no,
      canAddContext: no,
      awaited: observed("yes", "a slow hook delays the model call"),
      onCrash: observed("open"),
      onTimeout: observed("open"),
      onGarbage: observed("open"),
    }),
    PostModelRequest: event({
      moment: "after_effect",
      canBlock: no,
      canModify: no,
      canAddContext: no,
      onCrash: observed("open"),
      onTimeout: observed("open"),
      onGarbage: observed("open"),
    }),
  },
};
