// The plugin inside OpenClaw. It is registered more than once a process, so that registering does nothing but register; a
// hook in front of a tool answers before the client's own 15 seconds are over, and returns what the client honours.
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { openGate } from "./gate-client.mjs";

const version = "1.0.0";
const rememberedMax = 512;
/** What the client's question may hold, and how long it waits. */
const question = { titleMaxChars: 80, textMaxChars: 512, timeoutMs: 600_000 };
const gate = openGate({ runtime: "openclaw", version, folder: dirname(fileURLToPath(import.meta.url)) });
const folders = new Map();
const refused = new Map();
/** Model calls that ended, until the message that tells their tokens is written. */
const ended = new Map();
const seen = new Map();
let isAnnounced = false;
/** Only a gateway has somebody to ask; anywhere else the client's question is a no at once, and a ticket does better. */
let isGateway = false;
let configuredFolder;

/** Contexts hold the whole configuration with its keys, live objects, and histories that were told before. */
const left = new Set(["config", "cfg", "abortSignal", "hookInvocation", "messages", "systemPrompt", "tools"]);
function toPlain(value) {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter(([key, one]) => !left.has(key) && typeof one !== "function"),
  );
}
function remember(map, key, value) {
  if (key === undefined) return;
  if (map.size >= rememberedMax) map.delete(map.keys().next().value);
  map.set(key, value);
}
/** The folder that the session works in: a hook of the same session said so, or the configuration does. */
function toPlace(ctx) {
  const directory = folders.get(ctx?.sessionKey) ?? configuredFolder ?? process.cwd();
  return { instance: gate.instance, directory };
}
const toPayload = (hook, event, ctx) => ({
  hook,
  place: toPlace(ctx),
  event: toPlain(event),
  ctx: toPlain(ctx),
});
const keyOf = ({ runId, toolCallId }) => `${runId}\0${toolCallId}`;

function note(ctx) {
  if (typeof ctx?.workspaceDir === "string") remember(folders, ctx.sessionKey, ctx.workspaceDir);
  if (!isAnnounced) {
    isAnnounced = true;
    void gate.tell({ hook: "plugin.loaded", place: toPlace(ctx), plugin: gate.plugin() });
  }
  const { sessionId, sessionKey, agentId } = ctx ?? {};
  if (sessionId === undefined || seen.has(sessionId)) return;
  // The embedded agent tells of no session's start: the first sign of one in this process stands for it.
  remember(seen, sessionId, true);
  const start = [
    { sessionId, sessionKey },
    { sessionId, sessionKey, agentId },
  ];
  void gate.tell(toPayload("session_start", ...start));
}
async function tell(hook, event, ctx) {
  try {
    // The client's own word of it tells more.
    if (hook === "session_start") remember(seen, ctx?.sessionId, true);
    note(ctx);
    await gate.tell(toPayload(hook, event, ctx));
  } catch {
    // Nothing waits for a report.
  }
}

function tellResult(event, ctx) {
  try {
    note(ctx);
    gate.tellResult(toPayload("after_tool_call", event, ctx));
  } catch {
    // Nothing waits for a report.
  }
}

async function beforeToolCall(event, ctx) {
  try {
    note(ctx);
    // What is asked about is a copy: parameters of another plugin come later, and show in the result.
    const payload = toPayload("before_tool_call", event, ctx);
    if (isGateway && gate.configuration.user_dialog !== false) payload.place.user_dialog = true;
    const answer = await gate.ask(payload, ctx?.abortSignal);
    if (answer.decision === "allow") return undefined;
    if (answer.decision !== "modify" && answer.decision !== "confirm") return block(event, answer.reason);
    if (answer.decision === "confirm") return { requireApproval: toQuestion(event, answer) };
    // Returned parameters are laid over the given ones: a field that is to go has to be said to be gone.
    const gone = Object.keys(event.params).filter((key) => !Object.hasOwn(answer.input, key));
    if (gone.length === 0) return { params: answer.input };
    return block(event, `REWRITE_IMPOSSIBLE: this client cannot take the field ${gone[0]} out of a call`);
  } catch {
    return block(event, "GATE_UNREACHABLE: the hook failed; the call did not run");
  }
}
/** Without "always": each call is decided anew. Every end but a yes blocks the call, in the client itself. */
function toQuestion(event, { what, reason }) {
  return {
    title: `${event.toolName}: a rule wants your yes`.slice(0, question.titleMaxChars),
    description: `${what}\n${reason}`.slice(0, question.textMaxChars),
    severity: "warning",
    allowedDecisions: ["allow-once", "deny"],
    timeoutMs: question.timeoutMs,
    onResolution(decision) {
      if (decision !== "allow-once") remember(refused, keyOf(event), true);
    },
  };
}
function block(event, reason) {
  remember(refused, keyOf(event), true);
  return { block: true, blockReason: reason };
}

function flush(ctx) {
  const waiting = ended.get(ctx?.sessionKey);
  if (waiting === undefined) return;
  ended.delete(ctx.sessionKey);
  void gate.tell(waiting);
}

export default {
  id: "policy-hook-fabric",
  name: "Policy Hook Fabric",
  register(api) {
    configuredFolder = api?.config?.agents?.defaults?.workspace ?? configuredFolder;
    // The last word of all plugins: the lowest priority, so that no handler comes after it.
    api.on("before_tool_call", beforeToolCall, { priority: -1000 });
    api.on("after_tool_call", (event, ctx) => {
      // A call that the gate refused is no call that ran.
      if (!refused.has(keyOf(event))) tellResult(event, ctx);
    });
    api.on("before_agent_run", async (event, ctx) => {
      await tell("before_agent_run", event, ctx);
    });
    api.on("model_call_started", (_event, ctx) => flush(ctx));
    api.on("model_call_ended", (event, ctx) => {
      note(ctx);
      flush(ctx);
      if (ctx?.sessionKey === undefined) void tell("model_call_ended", event, ctx);
      else remember(ended, ctx.sessionKey, toPayload("model_call_ended", event, ctx));
    });
    // Synchronous in this client. It alone tells the tokens of one model call.
    api.on("before_message_write", (event, ctx) => {
      const waiting = ended.get(ctx?.sessionKey);
      if (waiting === undefined || event?.message?.role !== "assistant") return;
      const { usage, stopReason, model } = event.message;
      waiting.message = { usage, stopReason, model };
      flush(ctx);
    });
    api.on("agent_end", async (event, ctx) => {
      flush(ctx);
      await tell("agent_end", event, ctx);
    });
    api.on("gateway_start", (event, ctx) => {
      isGateway = true;
      return tell("gateway_start", event, ctx);
    });
    for (const hook of [
      "session_start",
      "session_end",
      "before_compaction",
      "after_compaction",
      "before_reset",
      "subagent_spawned",
      "subagent_ended",
      "message_received",
      "gateway_stop",
    ])
      api.on(hook, (event, ctx) => tell(hook, event, ctx));
  },
};
