import type { HookRule } from "../../platform/hook-table.ts";
import * as session from "./session-events.ts";
import * as tool from "./tool-events.ts";

/** Every event of the client that is known, by its name. */
export const rules: ReadonlyMap<string, HookRule> = new Map([
  ["SessionStart", session.sessionStart],
  ["SessionEnd", session.sessionEnd],
  ["UserPromptSubmit", session.prompt],
  ["PreToolUse", tool.toolCall],
  ["PermissionRequest", tool.permission],
  ["PostToolUse", tool.toolResult],
  ["Stop", session.stop],
  ["Interrupt", session.interrupt],
  ["SubagentStart", session.subagentStart],
  ["SubagentStop", session.subagentStop],
  ["PreCompact", session.compaction],
  ["PostCompact", session.compacted],
  ["PreModelRequest", session.modelRequest],
  ["PostModelRequest", session.modelResult],
]);
