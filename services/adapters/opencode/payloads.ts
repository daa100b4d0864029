import { z } from "zod";
import {
  actionInputField,
  identifierField,
  toolNameField,
  workingDirectoryField,
  toFieldRules,
} from "../../platform/payload-fields.ts";
import { pluginFields } from "../../platform/plugin-events.ts";

/** What the plugin adds: where it runs, the turn that the session is in, and the session that started this one. */
export const identity = {
  hook: z.string(),
  "place/turn": identifierField.optional(),
  "place/parent_session": identifierField.optional(),
};

const fields = toFieldRules(identity, {}, ["place/instance", "place/directory", "output"]);
const inProperties = (names: readonly string[]): readonly string[] => [
  "input/event/id",
  "input/event/type",
  ...names.map((name) => `input/event/properties/${name}`),
];

const text = z.string();
const session = { "input/sessionID": identifierField };
const eventSession = { "input/event/properties/sessionID": identifierField };
const count = z.number().int().nonnegative();

export const loadedFields = fields(
  { "place/instance": identifierField },
  { ...pluginFields, "place/directory": text },
  ["input/keys", "input/directory", "input/worktree", "input/project", "input/serverUrl"],
);
export const unloadedFields = fields({ "place/instance": identifierField }, pluginFields, ["input"]);

/** A call before it runs. Where it runs bears the action too: a relative path or a command means nothing without. */
export const toolCallFields = fields(
  {
    ...session,
    "input/tool": toolNameField,
    "input/callID": identifierField,
    "output/args": actionInputField,
    "place/directory": workingDirectoryField,
  },
  {},
  [],
);
/** A call after it ran to its end; its input is repeated as it was run. */
export const toolResultFields = fields(
  { ...session, "input/tool": toolNameField, "input/callID": identifierField },
  {
    "input/args": actionInputField,
    "place/directory": workingDirectoryField,
    "output/output": z.unknown(),
    "output/metadata": z.record(z.string(), z.unknown()),
  },
  ["output/title"],
);
export const shellFields = fields({ ...session }, { "input/cwd": text, "input/callID": identifierField }, []);

export const promptFields = fields(
  { ...session, "output/message/id": identifierField, "output/parts": z.array(z.unknown()) },
  {},
  [
    ...["agent", "model", "messageID", "variant"].map((name) => `input/${name}`),
    ...["role", "sessionID", "time", "agent", "model", "system", "tools", "format", "summary"].map(
      (name) => `output/message/${name}`,
    ),
  ],
);
export const compactingFields = fields(session, {}, []);
export const compactedFields = fields(eventSession, {}, inProperties([]));

const inInfo = (names: readonly string[]): readonly string[] => names.map((name) => `info/${name}`);
export const createdFields = fields(
  eventSession,
  {
    "input/event/properties/info/directory": text,
    "input/event/properties/info/parentID": identifierField,
    "input/event/properties/info/agent": text,
  },
  inProperties(
    inInfo([
      ...["id", "slug", "version", "projectID", "path", "title", "permission", "cost", "tokens", "time"],
      ...["model", "workspaceID", "share", "summary", "revert"],
    ]),
  ),
);
export const idleFields = fields(eventSession, {}, inProperties([]));
export const errorFields = fields(
  { "input/event/properties/sessionID": identifierField.optional(), "place/instance": identifierField },
  { "input/event/properties/error": z.looseObject({ name: text }) },
  inProperties([]),
);
const tokens = z.looseObject({
  input: count.optional(),
  output: count.optional(),
  reasoning: count.optional(),
  cache: z.looseObject({ read: count.optional(), write: count.optional() }).optional(),
});
/** A message of either side; one of the model that has ended tells what it used. */
export const messageFields = fields(
  { ...eventSession, "input/event/properties/info/role": text },
  {
    "input/event/properties/info/id": identifierField,
    "input/event/properties/info/modelID": text,
    "input/event/properties/info/providerID": text,
    "input/event/properties/info/parentID": identifierField,
    "input/event/properties/info/tokens": tokens,
    "input/event/properties/info/cost": z.number(),
    "input/event/properties/info/time": z.looseObject({
      created: z.number(),
      completed: z.number().optional(),
    }),
    "input/event/properties/info/error": z.looseObject({ name: text }),
  },
  inProperties(
    inInfo([
      ...["sessionID", "mode", "agent", "path", "finish", "model", "summary", "system", "tools"],
      ...["variant", "structured", "format"],
    ]),
  ),
);
/** A part of a message; a tool that failed shows nowhere else. */
export const partFields = fields(
  { ...eventSession, "input/event/properties/part/type": text },
  {
    "input/event/properties/part/text": text,
    "input/event/properties/part/tool": toolNameField,
    "input/event/properties/part/callID": identifierField,
    "input/event/properties/part/state": z.looseObject({ status: text }),
    "place/directory": workingDirectoryField,
  },
  inProperties([
    "time",
    ...["id", "messageID", "sessionID", "snapshot", "tokens", "cost", "reason", "time", "metadata"].map(
      (name) => `part/${name}`,
    ),
    ...["synthetic", "ignored"].map((name) => `part/${name}`),
  ]),
);
export const askedFields = fields(
  { ...eventSession, "input/event/properties/permission": toolNameField },
  {
    "input/event/properties/tool": z.looseObject({ callID: identifierField }),
    "input/event/properties/metadata": z.record(z.string(), z.unknown()),
  },
  inProperties(["id", "patterns", "always"]),
);
export const repliedFields = fields(
  { ...eventSession, "input/event/properties/reply": z.enum(["once", "always", "reject"]) },
  { "input/event/properties/message": text },
  inProperties(["requestID"]),
);
