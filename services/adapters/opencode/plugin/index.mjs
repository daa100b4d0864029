// The plugin inside OpenCode. One export: the client takes each exported function for a plugin. It loads or the tools run
// unguarded, so nothing at load may throw; each hook waits at most its own deadline, for the client has none.
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { openGate } from "./gate-client.mjs";

const version = "1.0.0";
const rememberedMax = 512;
/** Answers after which the client's own error is only ours, told once more. */
const refused = new Set(["deny", "ask"]);
/** Told by other hooks, or about nothing that anybody did. Left out by name: a new kind of event is reported. */
const quiet = new Set([
  "catalog.updated",
  "file.watcher.updated",
  "installation.updated",
  "integration.updated",
  "lsp.client.diagnostics",
  "lsp.updated",
  "message.part.delta",
  "message.part.removed",
  "message.removed",
  "models-dev.refreshed",
  "plugin.added",
  "reference.updated",
  "server.connected",
  "server.heartbeat",
  "session.diff",
  "session.updated",
  "todo.updated",
  "tui.prompt.append",
  "tui.toast.show",
]);

/** Whether an event tells something that no other one does. */
function isTold(event) {
  if (typeof event?.type !== "string") return true;
  if (quiet.has(event.type)) return false;
  // A completed call has a hook of its own; a failed one has nothing but this.
  if (event.type === "message.part.updated") return event.properties?.part?.state?.status === "error";
  if (event.type === "message.updated") {
    const info = event.properties?.info;
    return info?.role === "assistant" && info.time?.completed !== undefined;
  }
  if (event.type === "session.status") return event.properties?.status?.type === "retry";
  return true;
}

function remember(map, key, value) {
  if (map.size >= rememberedMax) map.delete(map.keys().next().value);
  map.set(key, value);
}

export const PolicyHookFabric = async ({ directory, worktree, project, serverUrl }) => {
  const gate = openGate({
    runtime: "opencode",
    version,
    folder: dirname(fileURLToPath(import.meta.url)),
  });
  const turns = new Map();
  const parents = new Map();
  const asked = new Map();
  const finished = new Map();

  const toPlace = (sessionId) => ({
    instance: gate.instance,
    directory,
    ...(turns.has(sessionId) ? { turn: turns.get(sessionId) } : {}),
    ...(parents.has(sessionId) ? { parent_session: parents.get(sessionId) } : {}),
  });
  const keyOf = ({ sessionID, callID }) => `${sessionID}\0${callID}`;

  async function tellEvent(event) {
    const { type, properties } = event;
    const sessionId = properties?.sessionID;
    const info = properties?.info;
    if (type === "session.created" && typeof info?.parentID === "string")
      remember(parents, sessionId, info.parentID);
    if (!isTold(event)) return;
    // A call that the gate refused is no call that failed.
    if (type === "message.part.updated" && refused.has(asked.get(keyOf(properties.part)))) return;
    if (type === "message.updated") {
      // The same ended message is announced more than once.
      if (finished.has(info.id)) return;
      remember(finished, info.id, true);
    }
    await gate.tell({ hook: `event.${type}`, place: toPlace(sessionId), input: { event } });
  }

  void gate.tell({
    hook: "plugin.init",
    place: toPlace(),
    plugin: gate.plugin(),
    input: { directory, worktree, project, serverUrl: String(serverUrl) },
  });

  return {
    "chat.message": async (input, output) => {
      const id = output?.message?.id;
      if (typeof id === "string") remember(turns, input.sessionID, id);
      await gate.tell({ hook: "chat.message", place: toPlace(input.sessionID), input, output });
    },
    "tool.execute.before": async (input, output) => {
      const answer = await gate.ask({
        hook: "tool.execute.before",
        place: toPlace(input.sessionID),
        input,
        output,
      });
      remember(asked, keyOf(input), answer.decision);
      if (answer.decision === "allow") return;
      // The client stops a call by an exception alone, and the model reads its message.
      if (answer.decision !== "modify") throw new Error(answer.reason);
      // In place: another object would be shown to later plugins while the old one runs.
      for (const key of Object.keys(output.args)) delete output.args[key];
      Object.assign(output.args, answer.input);
    },
    "tool.execute.after": async (input, output) => {
      gate.tellResult({ hook: "tool.execute.after", place: toPlace(input.sessionID), input, output });
    },
    "shell.env": async (input) => {
      // A person's own shell runs commands that no other hook sees.
      if (asked.has(keyOf(input))) return;
      await gate.tell({ hook: "shell.env", place: toPlace(input.sessionID), input });
      if (gate.configuration.user_shell === "refuse")
        throw new Error("USER_SHELL_REFUSED: commands past the policy gate are switched off here");
    },
    event: async (told) => {
      // Nothing waits for it: an exception would only be printed over the person's screen.
      try {
        await tellEvent(told.event);
      } catch {
        await gate.tell({ hook: "event", place: toPlace(), input: told });
      }
    },
    dispose: async () => {
      await gate.tell({ hook: "dispose", place: toPlace(), plugin: gate.plugin() });
    },
  };
};
