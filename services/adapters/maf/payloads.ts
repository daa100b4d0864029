import { z } from "zod";
import {
  actionInputField,
  identifierField,
  toolNameField,
  workingDirectoryField,
  toFieldRules,
} from "../../platform/payload-fields.ts";

/** What the middleware adds: the framework names no run, and gives a child agent a session of its own. */
export const identity = { hook: z.string(), "place/parent_session": identifierField.optional() };

export const everywhere = [
  ...["instance", "directory", "session", "turn", "call", "tool_name", "fabric_tool"].map(
    (name) => `place/${name}`,
  ),
  ...["spec", "interception_point", "timestamp", "sequence", "agent", "session", "target"].map(
    (name) => `payload/${name}`,
  ),
  ...["attrs", "kwargs", "metadata", "client_kwargs", "function_invocation_kwargs", "tools", "call_id"].map(
    (name) => `payload/${name}`,
  ),
];
const fields = toFieldRules(identity, {}, everywhere, "payload/");

const text = z.string();
const count = z.number().int().nonnegative();
const session = { "place/session": identifierField, "place/turn": identifierField.optional() };
/** As `schemas/gate.ts` takes it. */
const fabricTool = z
  .string()
  .max(200)
  .regex(/^[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+)+$/);
const call = {
  ...session,
  "place/call": identifierField,
  "place/tool_name": toolNameField,
  "place/fabric_tool": fabricTool.nullish(),
};

/** A call before it runs. Where it runs bears the action too: a relative path or a command means nothing without. */
export const toolCallFields = fields(
  { ...call, "payload/arguments": actionInputField, "place/directory": workingDirectoryField },
  {},
  ["function", "args_type", "result"],
);
export const toolResultFields = fields(
  call,
  {
    "payload/arguments": actionInputField,
    "place/directory": workingDirectoryField,
    "payload/outcome": z.enum(["succeeded", "failed"]),
    "payload/result": z.unknown(),
    "payload/error_type": text,
    "payload/duration_ms": count,
  },
  ["function", "result_type", "type", "message"],
);
export const interceptedCallFields = fields(
  { ...call, "payload/tool_call/args": actionInputField, "place/directory": workingDirectoryField },
  {},
  ["tool_call/id", "tool_call/name"],
);
export const interceptedResultFields = fields(
  call,
  {
    "payload/tool_call/args": actionInputField,
    "place/directory": workingDirectoryField,
    "payload/tool_result": z.looseObject({ is_error: z.boolean().optional() }),
  },
  ["tool_call/id", "tool_call/name"],
);
export const runFields = fields(session, { "payload/prompt": text, "payload/agent_name": text.nullable() }, [
  ...["stream", "messages", "options", "agent"],
]);
export const runEndFields = fields(
  session,
  { "payload/outcome": z.enum(["succeeded", "failed"]), "payload/error_type": text },
  ["result", "type", "message"],
);
const usage = z.record(z.string(), z.number());
export const modelFields = fields(
  session,
  {
    "payload/model": text,
    "payload/response_id": identifierField.nullable(),
    "payload/usage_details": usage,
    "payload/duration_ms": count,
  },
  ["finish_reason", "result"],
);
export const interceptedModelFields = fields(
  session,
  {
    "payload/model": z.looseObject({ id: text }),
    "payload/request_id": identifierField.nullable(),
    "payload/usage": usage,
  },
  ["response"],
);
export const startupFields = fields(session, { "place/directory": text }, ["agent_init"]);
export const inputFields = fields(session, { "payload/input": z.looseObject({ content: z.unknown() }) }, []);
export const shutdownFields = fields(session, { "payload/summary": z.looseObject({ reason: text }) }, []);
