import type {
  Cell,
  EventCapability,
  Power,
  RuntimeCapabilities,
} from "../../platform/runtime-capabilities.ts";
import { documented, observed, unknownCell } from "../../platform/runtime-capabilities.ts";

const documentedNo = documented("no");

/** An event of which only its arrival is known. */
const observing: EventCapability = {
  moment: "lifecycle",
  canBlock: documentedNo,
  canModify: documentedNo,
  canAsk: documentedNo,
  canAddContext: documentedNo,
  canReplaceResult: documentedNo,
  awaited: unknownCell,
  onCrash: documented("no_action"),
  onTimeout: documented("no_action"),
  onGarbage: documented("no_action"),
  stableIds: ["session_id", "prompt_id"],
};
const event = (differences: Partial<EventCapability>): EventCapability => ({ ...observing, ...differences });

const unlessOnFailure = (what: string): Cell<"open" | "closed"> =>
  observed("open", `closed with onFailure "block" (from 2.1.295): ${what}`);
const unknownFailure = { onCrash: unknownCell, onTimeout: unknownCell, onGarbage: unknownCell };
const callIds = ["session_id", "prompt_id", "tool_use_id", "agent_id"];
const awaited: Cell<Power> = observed("yes");

/** What Claude Code's hooks can do, and what becomes of the action when one fails. */
export const capabilities: RuntimeCapabilities = {
  runtime: "claude-code",
  clientVersion: "2.1.328",
  recordedOn: "2026-11-30",
  hooksOfOneEvent: observed("concurrent", "all are awaited; deny beats defer beats ask beats allow"),
  exceptionPropagates: observed("no"),
  effectRecoverable: observed("no"),
  lostEventsReplayable: documented("no", "the client keeps a transcript, it sends no event twice"),
  blindSpots: [
    "disableAllHooks and --bare: tools run without any hook",
    "one invalid entry in a settings file disables all hooks of that file in silence",
    "an input that fails the client's own validation sends neither a before nor an after event",
    "HTTP hooks are never called for SessionStart",
    "plain text on standard output is no answer, whatever onFailure says",
  ],
  events: {
    PreToolUse: event({
      moment: "before_effect",
      canBlock: observed("yes", "also in bypass mode; exit 2, JSON deny"),
      canModify: observed(
        "yes",
        "updatedInput replaces the whole input; one that fails the tool's schema is refused",
      ),
      canAsk: observed(
        "conditional",
        "a dialog in the terminal; headless it is a deny: used for rules that the user may answer, else a ticket",
      ),
      canAddContext: unknownCell,
      awaited,
      onCrash: unlessOnFailure("exit 1, a signal, a missing program, HTTP 500 or refused"),
      onTimeout: unlessOnFailure("the hook is killed, or the request given up"),
      onGarbage: observed(
        "open",
        "onFailure closes an unknown enum value and a non-JSON HTTP body, not plain or cut text",
      ),
      stableIds: callIds,
    }),
    PermissionRequest: event({
      moment: "before_effect",
      canBlock: observed("yes", "JSON deny only; exit 2 still shows the dialog"),
      canModify: observed("conditional", "only together with the user's own yes"),
      canAsk: observed("no", "it answers the question"),
      canAddContext: unknownCell,
      awaited,
      onCrash: observed("open", "the user is asked as usual"),
      onTimeout: unknownCell,
      onGarbage: unknownCell,
      stableIds: ["session_id", "prompt_id"],
    }),
    PostToolUse: event({
      moment: "after_effect",
      canBlock: observed("no", "the tool ran; exit 2 is feedback to the model, continue:false ends the turn"),
      canAddContext: observed("yes"),
      canReplaceResult: observed("conditional", "in the tool's own shape only"),
      awaited,
      onCrash: documented("open"),
      onTimeout: documented("open"),
      onGarbage: unknownCell,
      stableIds: callIds,
    }),
    PostToolUseFailure: event({
      moment: "after_effect",
      canBlock: observed("no", "exit 2 is feedback to the model"),
      awaited,
      onCrash: documented("open"),
      onTimeout: documented("open"),
      onGarbage: unknownCell,
      stableIds: callIds,
    }),
    PostToolBatch: event({
      moment: "after_effect",
      canBlock: observed("conditional", "ends the turn before the next model call"),
      canAddContext: documented("yes"),
      ...unknownFailure,
    }),
    PermissionDenied: event({ moment: "after_effect", stableIds: callIds }),
    UserPromptSubmit: event({
      canBlock: observed("yes"),
      canModify: documentedNo,
      canAddContext: observed("yes"),
      awaited,
      onCrash: observed("open", 'closed with onFailure "block"'),
      onTimeout: observed("open", 'closed with onFailure "block"'),
      onGarbage: unknownCell,
    }),
    UserPromptExpansion: event({
      canBlock: observed("yes"),
      canAddContext: documented("yes"),
      ...unknownFailure,
    }),
    Stop: event({
      canBlock: observed("conditional", "keeps the agent going, at most eight times in a row"),
      awaited,
      onCrash: observed("open", "onFailure is ignored here"),
      onTimeout: observed("open", "onFailure is ignored here"),
      onGarbage: unknownCell,
    }),
    StopFailure: event({}),
    SubagentStart: event({
      canBlock: observed("no"),
      canAddContext: documented("yes"),
      ...unknownFailure,
      stableIds: ["session_id", "prompt_id", "agent_id"],
    }),
    SubagentStop: event({
      canBlock: observed("conditional", "keeps the child agent going"),
      awaited,
      ...unknownFailure,
      stableIds: ["session_id", "prompt_id", "agent_id"],
    }),
    SessionStart: event({
      canBlock: observed("no"),
      canAddContext: documented("yes"),
      ...unknownFailure,
      stableIds: ["session_id"],
    }),
    SessionEnd: event({}),
    PreCompact: event({ canBlock: observed("yes"), awaited, ...unknownFailure }),
    PostCompact: event({}),
    PreModelSwitch: event({
      canBlock: observed("yes"),
      canAsk: documented("conditional", "headless refuses"),
      awaited,
      onCrash: unknownCell,
      onTimeout: documented("closed"),
      onGarbage: unknownCell,
    }),
    PostModelSwitch: event({}),
    TaskCreated: event({ canBlock: observed("yes"), awaited, ...unknownFailure }),
    TaskCompleted: event({ canBlock: observed("yes"), awaited, ...unknownFailure }),
    Elicitation: event({
      canBlock: documented("yes"),
      canModify: observed("conditional", "the hook can answer in the user's place"),
      awaited,
      ...unknownFailure,
    }),
    ElicitationResult: event({
      canModify: documented("conditional", "can override the answer"),
      ...unknownFailure,
    }),
    ConfigChange: event({ canBlock: documented("yes"), ...unknownFailure }),
    WorktreeCreate: event({
      canBlock: documented("yes", "any exit code but 0"),
      awaited,
      ...unknownFailure,
      takesOver: "the hook creates the worktree itself and prints its path: never install it to observe",
    }),
    WorktreeRemove: event({}),
    Notification: event({}),
    MessageDisplay: event({ canReplaceResult: documented("conditional", "the displayed text only") }),
    CwdChanged: event({}),
    FileChanged: event({}),
    DirectoryAdded: event({}),
    InstructionsLoaded: event({ stableIds: ["session_id"] }),
    Setup: event({ stableIds: ["session_id"] }),
    // Its name is in the client; it was never provoked.
    TeammateIdle: {
      ...observing,
      canBlock: unknownCell,
      canModify: unknownCell,
      canAsk: unknownCell,
      canAddContext: unknownCell,
      canReplaceResult: unknownCell,
      ...unknownFailure,
      stableIds: [],
    },
  },
};
