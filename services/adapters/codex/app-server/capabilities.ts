import type { EventCapability, RuntimeCapabilities } from "../../../platform/runtime-capabilities.ts";
import { documented, observed, unknownCell } from "../../../platform/runtime-capabilities.ts";

const no = observed("no");
const closed = observed("closed", "an unknown word, an empty or missing result or an error reply denies");
const ids = ["session_id", "turn_id", "call_id"];

const question: EventCapability = {
  moment: "before_effect",
  canBlock: observed("yes"),
  canModify: observed("no", "a reply has no place for an input; keys beside the decision are ignored"),
  canAsk: observed("yes", "the turn waits without a limit"),
  canAddContext: observed("no", "the model is told only that the user rejected it"),
  canReplaceResult: no,
  awaited: observed("yes"),
  onCrash: observed("closed", "a server whose client is gone denies what is pending and ends"),
  onTimeout: observed("closed", "it waits; nothing runs until it is answered"),
  onGarbage: closed,
  stableIds: ids,
};
const told: EventCapability = {
  moment: "lifecycle",
  canBlock: no,
  canModify: no,
  canAsk: no,
  canAddContext: no,
  canReplaceResult: no,
  awaited: no,
  onCrash: observed("open"),
  onTimeout: observed("open"),
  onGarbage: observed("open"),
  stableIds: ["session_id", "turn_id"],
};
const after: EventCapability = { ...told, moment: "after_effect" };

/** What the App Server's wire can do, and what becomes of the action when the proxy fails. */
export const capabilities: RuntimeCapabilities = {
  runtime: "codex-app-server",
  clientVersion: "0.169.0",
  recordedOn: "2026-11-30",
  hooksOfOneEvent: observed("concurrent", "questions of parallel calls are open at once, and independent"),
  exceptionPropagates: documented("no"),
  effectRecoverable: no,
  lostEventsReplayable: observed(
    "conditional",
    "an open question comes again with its id when a client resumes the thread",
  ),
  blindSpots: [
    "an accepted command may run a second time outside the sandbox, and nothing on the wire tells: sandbox none prevents it",
    "a command that a rule of the user allows, or that was accepted for the session, asks nothing; it is named when it ends",
    "view_image, list_mcp_resources, create_goal and spawn_agent ask nothing",
    "text typed into a terminal in the sandbox asks nothing; the proxy switches terminals off",
    "thread/shellCommand, command/exec, process/spawn and fs/* run without a question; the proxy refuses them",
    "a patch asks without its paths: they are in the item before it",
  ],
  events: {
    "item/commandExecution/requestApproval": question,
    "item/fileChange/requestApproval": question,
    "item/permissions/requestApproval": question,
    "mcpServer/elicitation/request": { ...question, stableIds: ["session_id", "turn_id"] },
    "item/tool/call": {
      ...question,
      canAddContext: observed("yes", "the reply is the tool's result"),
      onCrash: unknownCell,
    },
    "thread/started": { ...told, stableIds: ["session_id"] },
    "turn/started": told,
    "turn/completed": told,
    "item/completed": { ...after, stableIds: ids },
    "item/commandExecution/terminalInteraction": { ...after, stableIds: ids },
    "thread/tokenUsage/updated": after,
    "thread/settings/updated": { ...told, stableIds: ["session_id"] },
  },
};
