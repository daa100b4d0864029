import { z } from "zod";
import {
  actionInputField,
  identifierField,
  toolNameField,
  workingDirectoryField,
  toFieldRules,
} from "../../platform/payload-fields.ts";

/**
 * The plugin says which session, turn and call a payload belongs to: calls that the client's own code makes carry none,
 * and the plugin knows their task.
 */
export const identity = { hook: z.string(), "place/parent_session": identifierField.optional() };
const inSession = { "place/session": identifierField, "place/turn": identifierField.optional() };

/** Left in every payload: what `place` tells, and where the client runs. */
export const everywhere = [
  ...["instance", "directory", "turn", "call", "session"].map((name) => `place/${name}`),
  ...["session_id", "turn_id", "task_id", "tool_call_id", "api_request_id", "platform"].map(
    (name) => `payload/${name}`,
  ),
  ...["telemetry_schema_version", "middleware_trace", "middleware_schema_version"].map(
    (name) => `payload/${name}`,
  ),
];
const fields = toFieldRules(identity, {}, everywhere, "payload/");

const text = z.string();
const count = z.number().int().nonnegative();
const call = { ...inSession, "place/call": identifierField };

/** A call before it runs. Where it runs bears the action too: a relative path or a command means nothing without. */
export const toolCallFields = fields(
  {
    ...call,
    "payload/tool_name": toolNameField,
    "payload/args": actionInputField,
    "place/directory": workingDirectoryField,
  },
  {},
  [],
);
export const toolResultFields = fields(
  { ...call, "payload/tool_name": toolNameField },
  {
    "payload/args": actionInputField,
    "place/directory": workingDirectoryField,
    "payload/result": text,
    "payload/status": z.enum(["ok", "error", "blocked"]),
    "payload/error_message": text.nullable(),
    "payload/duration_ms": count,
  },
  ["error_type"],
);
export const sessionStartFields = fields(
  inSession,
  { "payload/model": text, "place/directory": text, "payload/reason": text },
  ["old_session_id", "new_session_id"],
);
/** Sent at the end of each turn. */
export const turnEndFields = fields(
  inSession,
  { "payload/completed": z.boolean(), "payload/interrupted": z.boolean() },
  ["model"],
);
export const sessionEndFields = fields(inSession, { "payload/reason": text }, [
  "old_session_id",
  "new_session_id",
]);
export const promptFields = fields(
  { ...inSession, "place/turn": identifierField, "payload/user_message": text },
  {},
  ["conversation_history", "is_first_turn", "model", "sender_id"],
);
export const usageField = z.looseObject({
  prompt_tokens: count.optional(),
  input_tokens: count.optional(),
  output_tokens: count.optional(),
  cache_read_tokens: count.optional(),
  cache_write_tokens: count.optional(),
  reasoning_tokens: count.optional(),
});
const modelCall = [
  ...["provider", "base_url", "api_mode", "api_call_count", "started_at", "ended_at", "message_count"],
  ...["finish_reason", "response_model", "response", "assistant_message", "assistant_content_chars"],
  ...["assistant_tool_call_count", "request", "retry_count", "max_retries", "retryable", "status_code"],
];
export const modelFields = fields(
  { ...inSession, "payload/model": text },
  {
    "payload/api_request_id": identifierField,
    "payload/api_duration": z.number().nonnegative(),
    "payload/usage": usageField.nullable(),
    "payload/reason": text,
    "payload/error": z.looseObject({ type: text }),
  },
  modelCall,
);
export const approvalFields = fields(
  inSession,
  { "payload/command": text, "payload/description": text, "payload/choice": text },
  ["pattern_key", "pattern_keys", "session_key", "surface"],
);
export const childStartFields = fields(
  { ...inSession, "payload/child_session_id": identifierField },
  { "payload/child_role": text },
  ["parent_session_id", "parent_turn_id", "parent_subagent_id", "child_subagent_id", "child_goal"],
);
export const childStopFields = fields(
  { ...inSession, "payload/child_session_id": identifierField },
  {
    "payload/child_role": text,
    "payload/child_status": text,
    "payload/child_summary": text.nullable(),
  },
  ["parent_session_id", "parent_turn_id", "duration_ms"],
);
