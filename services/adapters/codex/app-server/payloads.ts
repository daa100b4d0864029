import { z } from "zod";
import type { FieldRules } from "../../../platform/payload-fields.ts";
import {
  actionInputField,
  identifierField,
  workingDirectoryField,
} from "../../../platform/payload-fields.ts";

const text = z.string();
const identity = {
  method: z.string(),
  session_id: identifierField,
  turn_id: identifierField.optional(),
};
/** What the proxy knows of the thread. */
const surroundings = {
  permission_mode: z.string().max(64),
  sandbox: text,
  parent_session_id: identifierField,
};
const around = [
  "client_version",
  "model",
  "item",
  "open_items",
  "is_retried",
  "is_retry",
  "ruled",
  "working_directory",
  "call_id",
];

const fields = <B extends z.ZodRawShape, M extends z.ZodRawShape>(
  bearing: B,
  metadata: M,
): FieldRules<Omit<typeof identity, keyof B> & B, typeof surroundings & M> => ({
  bearing: { ...identity, ...bearing },
  metadata: { ...surroundings, ...metadata },
  dropped: around.filter((key) => !(key in bearing) && !(key in metadata)),
});

const call = { turn_id: identifierField, call_id: identifierField, working_directory: workingDirectoryField };
export const commandQuestionFields = fields(
  {
    ...call,
    params: z.looseObject({
      kind: z.enum(["command", "writeStdin", "humanCommand"]),
      command: z.string().min(1),
      networkApprovalContext: z.looseObject({ host: z.string(), protocol: z.string() }).nullish(),
      additionalPermissions: actionInputField.nullish(),
    }),
    is_retry: z.boolean().optional(),
  },
  {},
);
const change = z.looseObject({
  path: z.string().min(1),
  kind: z.looseObject({ type: z.enum(["add", "delete", "update"]), move_path: z.string().nullish() }),
  diff: z.string(),
});
export const fileQuestionFields = fields(
  {
    ...call,
    // The question names neither paths nor content: they are in the item that came before it.
    item: z.looseObject({ type: z.literal("fileChange"), changes: z.array(change).min(1) }),
    params: z.looseObject({ grantRoot: z.string().nullish() }),
  },
  {},
);
export const permissionQuestionFields = fields(
  { ...call, params: z.looseObject({ permissions: actionInputField }) },
  {},
);
export const serverToolQuestionFields = fields(
  {
    ...call,
    params: z.looseObject({
      serverName: z.string().min(1),
      _meta: z.looseObject({
        codex_approval_kind: z.literal("mcp_tool_call"),
        tool_name: z.string().min(1),
        tool_params: actionInputField.nullish(),
      }),
    }),
  },
  {},
);
export const clientToolFields = fields(
  {
    ...call,
    params: z.looseObject({
      tool: z.string().min(1),
      namespace: z.string().nullish(),
      arguments: actionInputField,
    }),
  },
  {},
);

export const threadFields = fields(
  {},
  {
    working_directory: text,
    params: z.looseObject({
      thread: z.looseObject({
        model: text.nullish(),
        forkedFromId: text.nullish(),
        parentThreadId: text.nullish(),
      }),
    }),
  },
);
export const turnStartFields = fields({ turn_id: identifierField }, { params: z.looseObject({}) });
export const turnEndFields = fields(
  {
    turn_id: identifierField,
    params: z.looseObject({
      turn: z.looseObject({
        status: z.string(),
        error: z.looseObject({ codexErrorInfo: z.unknown() }).nullish(),
        items: z.array(z.looseObject({ type: z.string(), text: z.string().nullish() })).nullish(),
      }),
    }),
  },
  { open_items: z.array(z.looseObject({ id: z.string(), type: z.string(), command: z.string().nullish() })) },
);
export const itemEndFields = fields(
  {
    turn_id: identifierField,
    call_id: identifierField.optional(),
    params: z.looseObject({ item: z.looseObject({ id: identifierField, type: z.string() }) }),
  },
  { ruled: z.enum(["accepted", "declined"]), is_retried: z.boolean(), working_directory: text },
);
export const terminalFields = fields(
  { turn_id: identifierField, call_id: identifierField, params: z.looseObject({ stdin: z.string() }) },
  { ruled: z.enum(["accepted", "declined"]) },
);
const count = z.number().int().nonnegative().optional();
const usage = z.looseObject({
  totalTokens: count,
  inputTokens: count,
  cachedInputTokens: count,
  cacheWriteInputTokens: count,
  outputTokens: count,
  reasoningOutputTokens: count,
});
export const usageFields = fields(
  {
    turn_id: identifierField,
    params: z.looseObject({ tokenUsage: z.looseObject({ total: usage, last: usage }) }),
  },
  { model: text },
);
export const settingsFields = fields(
  {},
  {
    params: z.looseObject({
      threadSettings: z.looseObject({ approvalPolicy: z.unknown(), model: text.nullish() }),
    }),
  },
);
