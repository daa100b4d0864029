import type { HookRule } from "../../platform/hook-table.ts";
import * as session from "./session-events.ts";
import { compaction, signal, toolBatch } from "./signal-events.ts";
import * as tool from "./tool-events.ts";

const switchFields = [
  "requested_model",
  "source",
  "context_tokens",
  "prompt_cache_warm",
  "cache_ttl",
  "estimated_cache_write_usd",
  "pricing",
];
const taskFields = ["task_id", "task_description", "teammate_name", "team_name"];

/** Every event of the client that is known, by its name. */
export const rules: ReadonlyMap<string, HookRule> = new Map([
  ["SessionStart", session.sessionStart],
  ["SessionEnd", session.sessionEnd],
  ["UserPromptSubmit", session.prompt],
  ["UserPromptExpansion", session.command],
  ["PreToolUse", tool.toolCall],
  ["PermissionRequest", tool.permission],
  ["PermissionDenied", tool.refused],
  ["PostToolUse", tool.toolResult],
  ["PostToolUseFailure", tool.toolFailure],
  ["PostToolBatch", toolBatch],
  ["Stop", session.stop],
  ["StopFailure", session.stopFailure],
  ["SubagentStart", session.subagentStart],
  ["SubagentStop", session.subagentStop],
  ["PreCompact", compaction],
  ["PostCompact", session.compacted],
  [
    "PreModelSwitch",
    signal(
      "before_model_switch",
      "model_switch_requested",
      ["from_model", "to_model"],
      null,
      switchFields,
      " -> ",
    ),
  ],
  [
    "PostModelSwitch",
    signal("after_model_switch", "model_switched", ["from_model", "to_model"], null, switchFields, " -> "),
  ],
  ["Notification", signal("notice", "notice_shown", ["notification_type", "message"], null, ["title"])],
  [
    "MessageDisplay",
    signal("message", "message_shown", ["delta"], null, ["turn_id", "message_id", "index", "final"]),
  ],
  ["CwdChanged", signal("workspace_move", "workspace_moved", [], "new_cwd", ["old_cwd"])],
  ["DirectoryAdded", signal("directory_added", "directory_added", ["source"], "directory", [])],
  ["FileChanged", signal("file_changed", "file_changed", ["event"], "file_path", [])],
  ["WorktreeCreate", signal("worktree_create", "worktree_created", ["name"], null, [])],
  ["WorktreeRemove", signal("worktree_remove", "worktree_removed", [], "worktree_path", [])],
  ["ConfigChange", signal("configuration_change", "configuration_changed", ["source"], "file_path", [])],
  [
    "InstructionsLoaded",
    signal("instructions_loaded", "instructions_loaded", ["load_reason"], "file_path", [
      "memory_type",
      "globs",
      "trigger_file_path",
      "parent_file_path",
    ]),
  ],
  ["TaskCreated", signal("todo_created", "todo_created", ["task_subject"], null, taskFields)],
  ["TaskCompleted", signal("todo_completed", "todo_completed", ["task_subject"], null, taskFields)],
  [
    "Elicitation",
    signal("input_request", "input_requested", ["mcp_server_name", "message"], null, [
      "mode",
      "requested_schema",
    ]),
  ],
  [
    "ElicitationResult",
    signal("input_answer", "input_answered", ["mcp_server_name", "action"], null, ["mode", "content"]),
  ],
  ["Setup", signal("setup", "setup_ran", ["trigger"], null, [])],
  // Known by its name only: no recording of it exists.
  ["TeammateIdle", signal("teammate_idle", "unknown", ["teammate_name"], null, ["team_name"])],
]);
