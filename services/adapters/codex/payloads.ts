import { z } from "zod";
import {
  actionInputField,
  identifierField,
  toolNameField,
  workingDirectoryField,
  toFieldRules,
} from "../../platform/payload-fields.ts";

/** Fields that decide whom and what a payload is about. In a child agent `turn_id` is the child's own. */
const identity = {
  hook_event_name: z.string(),
  session_id: identifierField,
  turn_id: identifierField.optional(),
  agent_id: identifierField.optional(),
};
const surroundings = { permission_mode: z.string().max(64) };

const fields = toFieldRules(identity, surroundings, ["transcript_path"]);

const text = z.string();
/** Every event inside a turn carries it. */
const inTurn = { turn_id: identifierField };
const agent = ["agent_type", "cwd", "model"];

export const sessionStartFields = fields(
  {},
  { source: z.enum(["startup", "resume", "clear", "compact", "fork"]), model: text, cwd: text },
  ["agent_type"],
);
export const sessionEndFields = fields({}, { reason: text }, agent);
export const promptFields = fields({ ...inTurn, prompt: z.string() }, {}, agent);

/** A call before it runs. Where it runs bears the action too: a relative path or a command means nothing without. */
export const toolCallFields = fields(
  {
    ...inTurn,
    tool_name: toolNameField,
    tool_input: actionInputField,
    tool_use_id: identifierField,
    cwd: workingDirectoryField,
  },
  {},
  ["agent_type", "model"],
);
/** The client's own question carries no call id. */
export const permissionFields = fields(
  {
    ...inTurn,
    tool_name: toolNameField,
    tool_input: actionInputField,
    tool_use_id: identifierField.optional(),
    cwd: workingDirectoryField,
  },
  {},
  ["agent_type", "model"],
);
export const toolResultFields = fields(
  { ...inTurn, tool_name: toolNameField, tool_use_id: identifierField },
  // A result repeats its call; of one that was never asked about, this is all that is known.
  { tool_response: z.unknown(), tool_input: actionInputField, cwd: workingDirectoryField },
  ["agent_type", "model"],
);

export const stopFields = fields(
  inTurn,
  { stop_hook_active: z.boolean(), last_assistant_message: z.string().nullable() },
  agent,
);
export const interruptFields = fields(inTurn, {}, agent);
export const subagentStartFields = fields({ ...inTurn, agent_id: identifierField }, { agent_type: text }, [
  "cwd",
  "model",
]);
export const subagentStopFields = fields(
  { ...inTurn, agent_id: identifierField },
  { agent_type: text, last_assistant_message: z.string().nullable() },
  ["cwd", "model", "stop_hook_active", "agent_transcript_path"],
);
export const compactionFields = fields(inTurn, { trigger: text }, agent);
export const compactedFields = fields(inTurn, { trigger: z.enum(["manual", "auto"]) }, agent);

export const modelRequestFields = fields(inTurn, { model: text }, ["agent_type", "cwd"]);
/** Cached and cache-written tokens are part of `input_tokens`, reasoning part of `output_tokens`. */
export const tokenUsageKeys = [
  "input_tokens",
  "cached_input_tokens",
  "cache_write_input_tokens",
  "output_tokens",
  "reasoning_output_tokens",
] as const;
const count = z.number().int().nonnegative().optional();
export const modelResultFields = fields(
  { ...inTurn, model: z.string().min(1) },
  {
    status: text,
    error: z.union([z.string(), z.null()]),
    token_usage: z
      .looseObject({
        input_tokens: count,
        cached_input_tokens: count,
        cache_write_input_tokens: count,
        output_tokens: count,
        reasoning_output_tokens: count,
      })
      .nullable(),
  },
  ["agent_type", "cwd"],
);
