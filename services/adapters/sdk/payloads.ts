import { z } from "zod";
import {
  actionInputField,
  identifierField,
  toolNameField,
  toFieldRules,
} from "../../platform/payload-fields.ts";

/** Fields that decide whom and what an event is about. */
const identity = {
  event: z.string(),
  session_id: identifierField,
  turn_id: identifierField.optional(),
  agent_id: identifierField.optional(),
};
const text = z.string();
const size = z.number().nonnegative();
const outcome = z.enum(["succeeded", "failed", "interrupted", "blocked", "unknown"]);
/** Who is told no or something else by a handler is in the harness' own record. */
const everywhere = ["sdk_version", "parent_session_id", "denied_by", "rewritten_by"];

const fields = toFieldRules(identity, {}, everywhere);
const called = { call_id: identifierField, tool: toolNameField };
/** What ran, as far as it can be judged. */
const input = { input: actionInputField, working_directory: text };

export const configurationFields = fields({}, { digest: text, source: text }, ["handlers"]);
export const sessionStartFields = fields(
  {},
  {
    source: z.enum(["startup", "resume", "clear", "compact", "fork"]),
    model: text,
    working_directory: text,
  },
);
export const sessionEndFields = fields({}, { reason: text });
export const promptFields = fields({ prompt: text }, {});
export const turnStartFields = fields(
  { turn_id: identifierField },
  { trigger: z.enum(["prompt", "resume", "subagent"]) },
);
export const turnEndFields = fields(
  { outcome },
  { final_message: text, error_kind: text, continued_by_hook: z.boolean() },
);
export const modelFields = fields(
  { model: z.string().min(1), outcome },
  {
    input_tokens: size,
    cached_input_tokens: size,
    cache_write_tokens: size,
    output_tokens: size,
    reasoning_tokens: size,
    duration_ms: size,
    error_kind: text,
    model_call_id: text,
  },
);
export const toolResultFields = fields(called, { ...input, output: z.unknown(), duration_ms: size }, [
  "origin",
]);
export const toolFailureFields = fields(
  { ...called, outcome },
  { ...input, error: text, duration_ms: size },
  ["origin"],
);
export const toolBlockedFields = fields(
  { ...called, by: z.enum(["hook", "gate", "approval", "guard"]) },
  { reason_code: text, message: text },
  ["origin", "handler", "input", "working_directory"],
);
export const subagentStartFields = fields({ subagent_id: identifierField }, { kind: text });
export const subagentStopFields = fields(
  { subagent_id: identifierField, outcome },
  { kind: text, final_message: text },
);
export const compactionFields = fields({}, { trigger: z.enum(["manual", "automatic"]) });
export const compactedFields = fields({}, { trigger: z.enum(["manual", "automatic"]), summary_bytes: size });
