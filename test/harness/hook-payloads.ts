import { randomBytes } from "node:crypto";

type Payload = Record<string, unknown>;

const claudeBase = {
  session_id: "claude-session",
  prompt_id: "prompt-1",
  transcript_path: "/h/t.jsonl",
  cwd: "/h/project",
  permission_mode: "default",
};
const newCallId = (): string => `toolu_${randomBytes(8).toString("hex")}`;

/** Claude Code in front of a shell command; a call of its own unless `rest` says otherwise. */
export const claudeCall = (command: string, rest: Payload = {}): Payload => ({
  ...claudeBase,
  hook_event_name: "PreToolUse",
  tool_name: "Bash",
  tool_input: { command, description: "says what it does" },
  tool_use_id: newCallId(),
  ...rest,
});

/** Claude Code after a shell command. */
export const claudeResult = (rest: Payload = {}): Payload => ({
  ...claudeCall("ls", rest),
  hook_event_name: "PostToolUse",
  tool_response: { stdout: "x" },
  ...rest,
});

/** Claude Code after a shell command that failed. */
export const claudeFailure = (error: string, rest: Payload = {}): Payload => ({
  ...claudeCall("ls", rest),
  hook_event_name: "PostToolUseFailure",
  error,
  ...rest,
});

/** Claude Code when a person sends a prompt. */
export const claudePrompt = (prompt: string, rest: Payload = {}): Payload => ({
  ...claudeBase,
  hook_event_name: "UserPromptSubmit",
  prompt,
  ...rest,
});

/** Claude Code at the end of a session: asks nothing. */
export const claudeEnd = (rest: Payload = {}): Payload => {
  const { session_id, transcript_path, cwd } = claudeBase;
  return { session_id, transcript_path, cwd, hook_event_name: "SessionEnd", reason: "other", ...rest };
};

/** Codex in front of a shell command. */
export const codexCall = (command: string, rest: Payload = {}): Payload => ({
  session_id: "codex-session",
  turn_id: "turn-1",
  cwd: "/h/project",
  transcript_path: null,
  model: "m",
  permission_mode: "default",
  hook_event_name: "PreToolUse",
  tool_name: "Bash",
  tool_input: { command },
  tool_use_id: newCallId(),
  ...rest,
});

/** The reason in Claude Code's own form of a no; null when the reply is no such thing. */
export const claudeDenial = (reply: unknown): string | null => {
  const output = (
    reply as { hookSpecificOutput?: { permissionDecision?: string; permissionDecisionReason?: string } }
  ).hookSpecificOutput;
  return output?.permissionDecision === "deny" ? (output.permissionDecisionReason ?? "") : null;
};
