import { z } from "zod";
import type { FieldRules } from "../../platform/payload-fields.ts";
import {
  actionInputField,
  identifierField,
  toolNameField,
  workingDirectoryField,
  toFieldRules,
} from "../../platform/payload-fields.ts";

/** Fields of every event that decide whom and what it is about. */
const identity = {
  hook_event_name: z.string(),
  session_id: identifierField,
  /** Absent before a session's first prompt, and in a call that a resumed session takes up again. */
  prompt_id: identifierField.optional(),
  agent_id: identifierField.optional(),
};
const surroundings = { permission_mode: z.string().max(64) };
/** In every event, of no use: where the client keeps its own log, and how hard the model thinks. */
const droppedEverywhere = ["transcript_path", "effort"];

const fields = toFieldRules(identity, surroundings, droppedEverywhere);

const text = z.string();
const server = z.looseObject({ name: z.string() });
const listOfObjects = z.array(z.record(z.string(), z.unknown()));

export const sessionStartFields = fields(
  {},
  { source: z.enum(["startup", "resume", "clear", "compact"]), model: text, cwd: text },
  [
    "agent_type",
    "seconds_since_last_response",
    "context_tokens",
    "prompt_cache_likely_expired",
    "estimated_cache_write_usd",
  ],
);
export const sessionEndFields = fields({}, { reason: text }, ["agent_type", "cwd"]);
export const promptFields = fields({ prompt: z.string() }, {}, ["agent_type", "cwd"]);
export const commandFields = fields({ prompt: z.string() }, { command_name: text }, [
  "agent_type",
  "cwd",
  "expansion_type",
  "command_args",
  "command_source",
]);

/** A call before it runs. Where it runs bears the action too: a relative path or a command means nothing without. */
export const toolCallFields = fields(
  {
    tool_name: toolNameField,
    tool_input: actionInputField,
    tool_use_id: identifierField,
    cwd: workingDirectoryField,
  },
  { mcp_server: server },
  ["agent_type"],
);
/** The client's own question carries no call id. */
export const permissionFields = fields(
  {
    tool_name: toolNameField,
    tool_input: actionInputField,
    tool_use_id: identifierField.optional(),
    cwd: workingDirectoryField,
  },
  { mcp_server: server },
  ["agent_type", "permission_suggestions"],
);
export const refusedFields = fields(
  { tool_name: toolNameField, tool_use_id: identifierField },
  { reason: text, mcp_server: server },
  ["agent_type", "cwd", "tool_input"],
);
/** A result repeats its call; of one that was never asked about, this is all that is known. */
const repeatedCall = { tool_input: actionInputField, cwd: workingDirectoryField };
export const toolResultFields = fields(
  { tool_name: toolNameField, tool_use_id: identifierField },
  {
    tool_response: z.unknown(),
    duration_ms: z.number().int().nonnegative(),
    mcp_server: server,
    ...repeatedCall,
  },
  ["agent_type"],
);
export const toolFailureFields = fields(
  { tool_name: toolNameField, tool_use_id: identifierField },
  {
    error: text,
    is_interrupt: z.boolean(),
    duration_ms: z.number().int().nonnegative(),
    mcp_server: server,
    ...repeatedCall,
  },
  ["agent_type"],
);
export const toolBatchFields = fields({}, { tool_calls: listOfObjects }, ["agent_type", "cwd"]);

export const stopFields = fields(
  {},
  {
    stop_hook_active: z.boolean(),
    last_assistant_message: z.string().nullable(),
    background_tasks: listOfObjects,
  },
  ["agent_type", "cwd", "session_crons"],
);
export const stopFailureFields = fields({}, { error: text, last_assistant_message: z.string().nullable() }, [
  "agent_type",
  "cwd",
]);
export const subagentStartFields = fields({ agent_id: identifierField }, { agent_type: text }, ["cwd"]);
export const subagentStopFields = fields(
  { agent_id: identifierField },
  { agent_type: text, last_assistant_message: z.string().nullable() },
  ["cwd", "stop_hook_active", "agent_transcript_path", "background_tasks", "session_crons"],
);
export const compactionFields = fields({}, { trigger: text }, ["agent_type", "cwd", "custom_instructions"]);
export const compactedFields = fields({}, { trigger: z.enum(["manual", "auto"]), compact_summary: text }, [
  "agent_type",
  "cwd",
]);

/** A signal: which of its fields make the detail, which is the path, which are left. */
export const signalFields = (
  detail: readonly string[],
  path: string | null,
  dropped: readonly string[],
): FieldRules<typeof identity, Record<string, z.ZodType<string>>> => {
  const all = fields({}, {}, ["agent_type", ...(path === "cwd" ? [] : ["cwd"]), ...dropped]);
  const read = [...detail, ...(path === null ? [] : [path])];
  return {
    bearing: all.bearing,
    metadata: { ...all.metadata, ...Object.fromEntries(read.map((key) => [key, text])) },
    dropped: all.dropped,
  };
};
