import { z } from "zod";
import {
  actionInputField,
  identifierField,
  toolNameField,
  workingDirectoryField,
  toFieldRules,
} from "../../platform/payload-fields.ts";

/** The run that a payload belongs to, where it tells one. */
export const identity = { hook: z.string() };
const run = { "event/runId": identifierField.optional() };
const text = z.string();
const count = z.number().int().nonnegative();

/** Left in every payload: who the client's own agent and requester are, its trace, and what the event repeats. */
export const everywhere = [
  "place/instance",
  "place/directory",
  ...["agentId", "sessionKey", "trace", "requester", "toolName", "toolCallId", "runId", "sessionId"].map(
    (name) => `ctx/${name}`,
  ),
  ...["workspaceDir", "activeProjectKeys", "modelProviderId", "modelId", "trigger", "messageProvider"].map(
    (name) => `ctx/${name}`,
  ),
  ...["contextTokenBudget", "contextWindowSource", "channel", "channelId", "senderId", "chatId"].map(
    (name) => `ctx/${name}`,
  ),
  ...["abortSignal", "config", "cfg", "hookInvocation", "port", "conversationId", "messageId"].map(
    (name) => `ctx/${name}`,
  ),
  ...["childSessionKey", "requesterSessionKey"].map((name) => `ctx/${name}`),
];
const fields = toFieldRules(identity, {}, everywhere);

const session = { "ctx/sessionId": identifierField };

/** A call before it runs. Where it runs bears the action too: a relative path or a command means nothing without. */
export const toolCallFields = fields(
  {
    ...session,
    ...run,
    "event/toolName": toolNameField,
    "event/params": actionInputField,
    "event/toolCallId": identifierField,
    "place/directory": workingDirectoryField,
    // The plugin runs in a gateway, where the client can ask its operators.
    "place/user_dialog": z.boolean().optional(),
  },
  {},
  ["event/toolKind", "event/toolInputKind", "event/derivedPaths"],
);
/** A call after it: always sent, also for one that failed; it repeats the input as it was run. */
export const toolResultFields = fields(
  { ...session, ...run, "event/toolName": toolNameField, "event/toolCallId": identifierField },
  {
    "event/params": actionInputField,
    "place/directory": workingDirectoryField,
    "event/result": z.unknown(),
    "event/error": text,
    "event/durationMs": count,
  },
  [],
);
export const runFields = fields({ ...session, "ctx/runId": identifierField, "event/prompt": text }, {}, [
  ...["messages", "systemPrompt", "channelId", "senderId", "senderIsOwner", "images"].map(
    (name) => `event/${name}`,
  ),
]);
export const runEndFields = fields(
  { ...session, "ctx/runId": identifierField },
  { "event/success": z.boolean(), "event/error": text },
  ["event/messages", "event/durationMs", "event/runId"],
);
const usage = z.looseObject({
  input: count.optional(),
  output: count.optional(),
  cacheRead: count.optional(),
  cacheWrite: count.optional(),
});
/** One model call, with the tokens that the message told which it made. */
export const modelFields = fields(
  { "event/sessionId": identifierField, ...run, "event/model": text },
  {
    "event/callId": identifierField,
    "event/outcome": text,
    "event/durationMs": count,
    "event/errorCategory": text,
    "message/usage": usage,
  },
  [
    ...["sessionKey", "provider", "api", "transport", "contextTokenBudget", "contextWindowSource"].map(
      (name) => `event/${name}`,
    ),
    ...["requestPayloadBytes", "responseStreamBytes", "timeToFirstByteMs", "failureKind"].map(
      (name) => `event/${name}`,
    ),
    "message/stopReason",
    "message/model",
  ],
);
export const modelStartFields = fields(
  { "event/sessionId": identifierField, ...run },
  { "event/model": text },
  ["callId", "sessionKey", "provider", "api", "transport", "contextTokenBudget", "contextWindowSource"].map(
    (name) => `event/${name}`,
  ),
);
export const sessionStartFields = fields(session, { "event/resumedFrom": text, "place/directory": text }, [
  "event/sessionId",
  "event/sessionKey",
]);
export const sessionEndFields = fields(session, { "event/reason": text }, [
  ...["sessionId", "sessionKey", "messageCount", "nextSessionId", "nextSessionKey", "durationMs"].map(
    (name) => `event/${name}`,
  ),
  ...["sessionFile", "transcriptArchived"].map((name) => `event/${name}`),
]);
export const compactedFields = fields(session, {}, [
  "event/messageCount",
  "event/compactedCount",
  "event/tokenCount",
  "event/sessionFile",
]);
export const spawnedFields = fields(
  { "event/childSessionKey": identifierField, "ctx/requesterSessionKey": identifierField },
  { "event/label": text },
  ["runId", "agentId", "requester", "threadRequested", "mode", "resolvedModel", "resolvedProvider"].map(
    (name) => `event/${name}`,
  ),
);
export const endedFields = fields(
  { "event/targetSessionKey": identifierField },
  { "event/outcome": text, "event/targetKind": text },
  ["reason", "sendFarewell", "runId", "endedAt", "error", "accountId"].map((name) => `event/${name}`),
);
export const messageFields = fields({ "event/sessionKey": identifierField }, { "event/content": text }, [
  ...["from", "messageId", "senderId", "metadata", "timestamp", "threadId"].map((name) => `event/${name}`),
]);
