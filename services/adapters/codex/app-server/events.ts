import type { GateRequest } from "../../../../schemas/gate.ts";
import type { EffectClass, Outcome } from "../../../../schemas/generated/types.ts";
import {
  textBytes,
  toCount,
  toMessageBytes,
  toShort,
  toToolName,
  valueBytes,
} from "../../../platform/adapter-kit.ts";
import type { Call } from "../../../platform/gated-call.ts";
import { toPermissionQuestion, toReportedCall, toToolCall } from "../../../platform/gated-call.ts";
import type { HookRule, Meaning, Scene } from "../../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../../platform/hook-table.ts";
import { toPathText } from "../../../platform/listed-paths.ts";
import { toJsonPreview, toTextPreview } from "../../../platform/masked-preview.ts";
import type { UnreadableField } from "../../../platform/payload-fields.ts";
import { isJsonObject, sortNested } from "../../../platform/payload-fields.ts";
import { toFabricTool } from "../tool-names.ts";
import * as fields from "./payloads.ts";
import { toCommand } from "./to-command.ts";
import { toPatch } from "./to-patch.ts";
import { textAt } from "./wire-message.ts";

const previewMaxChars = 512;
const promptPreviewMaxChars = 256;
const unnameable: UnreadableField = { ok: false, problem: "unknown_value", field: "/params" };

/** The question with the session that started this one, where it is known. */
const withParent = (meaning: Meaning, parent: string | undefined): Meaning =>
  meaning.request === undefined || parent === undefined
    ? meaning
    : { ...meaning, request: { ...meaning.request, parent_session_id: parent } satisfies GateRequest };

const left = (
  params: object,
  read: readonly string[],
  known: readonly string[],
): NonNullable<Meaning["nested"]>[number] =>
  sortNested("/params", params, read, ["threadId", "turnId", "itemId", "startedAtMs", ...known]);

const commandQuestion = hookRule(
  "before_tool",
  true,
  fields.commandQuestionFields,
  ({ bearing, metadata }, scene) => {
    const { params, working_directory: workingDirectory } = bearing;
    const nested = [
      left(
        params,
        ["kind", "command", "networkApprovalContext", "additionalPermissions", "reason"],
        [
          "approvalId",
          "environmentId",
          "cwd",
          "commandActions",
          "proposedExecpolicyAmendment",
          "proposedNetworkPolicyAmendments",
          "availableDecisions",
        ],
      ),
    ];
    const { networkApprovalContext: network, additionalPermissions: more, kind, command } = params;
    let call: Call;
    if (network != null) {
      const input = { url: `${network.protocol}://${network.host}`, prompt: command };
      call = { tool: "web.fetch", alias: "network", input, workingDirectory };
    } else if (kind === "writeStdin") {
      // What is typed into a running program means what that program makes of it.
      call = { tool: "other.write_stdin", alias: "write_stdin", input: { command }, workingDirectory };
    } else {
      const input = {
        command: typeof command === "string" ? toCommand(command) : command,
        // The same command a second time, without the sandbox: another plan.
        ...(bearing.is_retry === true ? { with_escalated_permissions: true } : {}),
        ...(more == null ? {} : { additional_permissions: more }),
        ...(textAt(params, "reason") === undefined ? {} : { justification: textAt(params, "reason") }),
      };
      call = {
        tool: "shell.run",
        alias: kind === "humanCommand" ? "user_shell" : "exec_command",
        input,
        workingDirectory,
      };
    }
    return withParent(
      { ...toToolCall(call, bearing.call_id, [], scene), nested },
      metadata.parent_session_id,
    );
  },
);

const fileQuestion = hookRule(
  "before_tool",
  true,
  fields.fileQuestionFields,
  ({ bearing, metadata }, scene) => {
    const { item, params, working_directory: workingDirectory } = bearing;
    const input = {
      patch: toPatch(item.changes),
      // A right to a whole folder is more than this patch: nobody's rule knows the field, so it asks.
      ...(params.grantRoot == null ? {} : { grant_root: params.grantRoot }),
    };
    const call: Call = { tool: "file.patch", alias: "apply_patch", input, workingDirectory };
    return withParent(
      {
        ...toToolCall(
          call,
          bearing.call_id,
          item.changes.map(({ path }) => path),
          scene,
        ),
        nested: [left(params, ["grantRoot"], ["reason"])],
      },
      metadata.parent_session_id,
    );
  },
);

const permissionQuestion = hookRule(
  "permission",
  true,
  fields.permissionQuestionFields,
  ({ bearing, metadata }, scene) => {
    const { params, working_directory: workingDirectory } = bearing;
    const call: Call = {
      tool: "other.request_permissions",
      alias: "request_permissions",
      input: { permissions: params.permissions },
      workingDirectory,
    };
    return withParent(
      {
        ...toPermissionQuestion(call, scene),
        nested: [left(params, ["permissions"], ["environmentId", "cwd", "reason"])],
      },
      metadata.parent_session_id,
    );
  },
);

const serverToolQuestion = hookRule(
  "before_tool",
  true,
  fields.serverToolQuestionFields,
  ({ bearing, metadata }, scene) => {
    const { params, working_directory: workingDirectory } = bearing;
    const meta = params["_meta"];
    const tool = toToolName("mcp", [params.serverName, meta.tool_name]);
    if (tool === null) return unnameable;
    const call: Call = {
      tool,
      alias: `mcp__${params.serverName}__${meta.tool_name}`,
      input: meta.tool_params ?? {},
      workingDirectory,
    };
    return withParent(
      {
        ...toToolCall(call, bearing.call_id, [], scene),
        nested: [left(params, ["serverName", "_meta"], ["mode", "message", "requestedSchema"])],
      },
      metadata.parent_session_id,
    );
  },
);

/** A tool of the client's own: nothing asks before it but this. */
const clientTool = hookRule("before_tool", true, fields.clientToolFields, ({ bearing, metadata }, scene) => {
  const { params, call_id: callId, working_directory: workingDirectory } = bearing;
  const segments = params.namespace == null ? [params.tool] : [params.namespace, params.tool];
  const tool = toToolName("other", segments);
  if (tool === null) return unnameable;
  const call: Call = { tool, alias: params.tool, input: params.arguments, workingDirectory };
  return withParent(
    {
      ...toToolCall(call, callId, [], scene),
      nested: [left(params, ["tool", "namespace", "arguments"], ["callId"])],
    },
    metadata.parent_session_id,
  );
});

const threadStart = hookRule("session_start", false, fields.threadFields, ({ metadata }, scene) => {
  const thread = metadata.params?.thread;
  return observe(
    toObservation(
      "agent.session.started",
      {
        source: thread?.forkedFromId == null ? "startup" : "fork",
        model: toShort(thread?.model ?? undefined),
        working_directory:
          metadata.working_directory === undefined ? null : toPathText(metadata.working_directory),
      },
      scene,
      {
        notFrom: ["call", "subagent", "turn", "session"],
        anchor: { scope: "session", id: scene.place.sessionId },
      },
    ),
  );
});
const turnStart = hookRule("turn_start", false, fields.turnStartFields, ({ bearing, metadata }, scene) =>
  observe(
    toObservation(
      "agent.turn.started",
      { trigger: metadata.parent_session_id === undefined ? "prompt" : "subagent" },
      scene,
      { notFrom: ["turn"], anchor: { scope: "turn", id: bearing.turn_id } },
    ),
  ),
);
const turnOutcomes: ReadonlyMap<string, Outcome> = new Map([
  ["completed", "succeeded"],
  ["failed", "failed"],
  ["interrupted", "interrupted"],
]);
const turnEnd = hookRule("turn_end", false, fields.turnEndFields, ({ bearing, metadata }, scene) => {
  const { turn } = bearing.params;
  const last = turn.items?.findLast((item) => item.type === "agentMessage")?.text;
  const info = turn.error?.codexErrorInfo;
  return {
    observations: [
      toObservation(
        "agent.turn.completed",
        {
          outcome: turnOutcomes.get(turn.status) ?? "unknown",
          error_kind:
            info === undefined ? null : toShort(typeof info === "string" ? info : JSON.stringify(info)),
          final_message_bytes: toMessageBytes(last),
          continued_by_hook: false,
          background_tasks: 0,
        },
        scene,
      ),
      // A turn may end while a command of it goes on, also after an interrupt.
      ...(metadata.open_items ?? []).map((item) =>
        toObservation(
          "agent.effect.ungated",
          {
            effect_class: effectOfItem(item.type),
            evidence: "unfinished_item",
            detail: toTextPreview(`${item.type} ${item.id}: ${item.command ?? ""}`, previewMaxChars),
          },
          { ...scene, place: { ...scene.place, toolCallId: item.id } },
          { tool: toolOfItem({ type: item.type }) ?? "other.item" },
        ),
      ),
    ],
  };
});

const effectOfItem = (type: string): EffectClass =>
  type === "commandExecution" ? "execute" : type === "fileChange" ? "write" : "unknown";

/** The fabric's name of the tool that an item is a call of; null for items that do nothing. */
function toolOfItem(item: Readonly<Record<string, unknown>>): string | null {
  switch (item["type"]) {
    case "commandExecution":
      return "shell.run";
    case "fileChange":
      return "file.patch";
    case "mcpToolCall":
      return toToolName("mcp", [textAt(item, "server") ?? "", textAt(item, "tool") ?? ""]) ?? "other.mcp";
    case "dynamicToolCall":
      return toToolName("other", [textAt(item, "tool") ?? ""]) ?? "other.item";
    case "collabAgentToolCall":
      return "agent.spawn";
    case "webSearch":
      return "web.search";
    case "imageView":
      return toFabricTool("view_image");
    default:
      return null;
  }
}
const itemOutcomes: ReadonlyMap<unknown, Outcome> = new Map<unknown, Outcome>([
  ["completed", "succeeded"],
  ["failed", "failed"],
  ["declined", "blocked"],
]);

const itemEnd = hookRule("item_end", false, fields.itemEndFields, ({ bearing, metadata }, scene) => {
  const { item } = bearing.params;
  if (item.type === "userMessage") return toPrompt(item, scene);
  if (item.type === "contextCompaction")
    return observe(
      toObservation("agent.session.compacted", { trigger: "unknown", summary_bytes: null }, scene),
    );
  const tool = toolOfItem(item);
  if (tool === null) return { observations: [] };
  const call = { ...scene, place: { ...scene.place, toolCallId: item.id } };
  if (item.type === "collabAgentToolCall") return toSpawned(item, call);
  const { ruled } = metadata;
  // A tool server's call that was declined ends as failed.
  if (item["status"] === "declined" || (item["status"] === "failed" && ruled === "declined")) {
    const refused = toObservation(
      "agent.permission.refused",
      { refused_by: ruled === "declined" ? "gate" : "user", reason: null, tool_alias: item.type },
      call,
      { tool },
    );
    return observe(refused);
  }
  const { workingDirectory, input } = toInput(item, metadata.working_directory);
  const isAsked = ruled === "accepted";
  const toUngated = (evidence: "result_without_decision" | "rerun_outside_sandbox") =>
    toObservation(
      "agent.effect.ungated",
      {
        effect_class: effectOfItem(item.type),
        evidence,
        detail: toJsonPreview({ tool, input }, previewMaxChars),
      },
      call,
      { tool },
    );
  // A failed question ends in `failed` too, without a process: nothing ran.
  const hasRun =
    item["status"] === "completed" || item["exitCode"] != null || item.type !== "commandExecution";
  return {
    observations: [
      toCompleted(item, tool, call),
      ...(isAsked || !hasRun ? [] : [toUngated("result_without_decision")]),
      // Its first run was in the sandbox, before anybody was asked; the second one was not in it.
      ...(metadata.is_retried === true ? [toUngated("rerun_outside_sandbox")] : []),
    ],
    ...toReportedCall({ tool, alias: item.type, input, workingDirectory }, call),
  };
});

function toCompleted(
  item: Readonly<Record<string, unknown>>,
  tool: string,
  scene: Scene,
): Meaning["observations"][number] {
  const { exitCode, aggregatedOutput, result, contentItems, error, status } = item;
  const output = aggregatedOutput ?? result ?? contentItems;
  const outcome =
    typeof exitCode === "number" && exitCode !== 0 ? "failed" : (itemOutcomes.get(status) ?? "unknown");
  return toObservation(
    "agent.tool.completed",
    {
      outcome,
      duration_ms: toCount(item["durationMs"]),
      output_bytes: output == null ? null : valueBytes(output),
      output_preview: output == null ? null : toJsonPreview(output, previewMaxChars),
      error_preview: error == null ? null : toJsonPreview(error, previewMaxChars),
      tool_alias: toShort(textAt(item, "type")),
    },
    scene,
    { tool },
  );
}

function toInput(
  item: Readonly<Record<string, unknown>>,
  cwd: string | undefined,
): {
  readonly input: Readonly<Record<string, unknown>> | undefined;
  readonly workingDirectory: string | undefined;
} {
  const workingDirectory = textAt(item, "cwd") ?? cwd;
  if (item["type"] === "commandExecution") {
    const { command } = item;
    return {
      input: { command: typeof command === "string" ? toCommand(command) : command },
      workingDirectory,
    };
  }
  if (item["type"] === "fileChange") return { input: { patch: toPatch(item["changes"]) }, workingDirectory };
  const given = item["arguments"];
  return { input: isJsonObject(given) ? given : undefined, workingDirectory };
}

function toPrompt(item: Readonly<Record<string, unknown>>, scene: Scene): Meaning {
  const parts = Array.isArray(item["content"]) ? (item["content"] as unknown[]) : [];
  const text = parts.map((part) => textAt(part, "text") ?? "").join("\n");
  return observe(
    toObservation(
      "agent.prompt.submitted",
      {
        prompt_bytes: textBytes(text),
        preview: toTextPreview(text, promptPreviewMaxChars),
        command_name: null,
      },
      scene,
    ),
  );
}

/** A child's own thread is never announced: the call that made it names it. */
function toSpawned(item: Readonly<Record<string, unknown>>, scene: Scene): Meaning {
  const children = Array.isArray(item["receiverThreadIds"]) ? (item["receiverThreadIds"] as unknown[]) : [];
  if (item["tool"] !== "spawnAgent") return { observations: [] };
  return {
    observations: children
      .filter((child) => typeof child === "string")
      .map((child) =>
        toObservation("agent.subagent.started", { subagent_id: child, subagent_kind: null }, scene, {
          notFrom: ["call"],
          anchor: { scope: "subagent", id: child },
        }),
      ),
  };
}

/** Typed into a terminal that was started before. A question for it comes only when that runs outside of the sandbox. */
const terminalInput = hookRule(
  "terminal_input",
  false,
  fields.terminalFields,
  ({ bearing, metadata }, scene) =>
    bearing.params.stdin === "" || metadata.ruled === "accepted"
      ? { observations: [] }
      : observe(
          toObservation(
            "agent.effect.ungated",
            {
              effect_class: "execute",
              evidence: "result_without_decision",
              detail: toJsonPreview({ stdin: bearing.params.stdin }, previewMaxChars),
            },
            scene,
            { tool: "other.write_stdin" },
          ),
        ),
);

const usage = hookRule("after_model", false, fields.usageFields, ({ bearing, metadata }, scene) => {
  const { last, total } = bearing.params.tokenUsage;
  return observe(
    toObservation(
      "agent.model.completed",
      {
        model: toTextPreview(metadata.model ?? "unknown", 128),
        outcome: "succeeded",
        input_tokens: toCount(last.inputTokens),
        cached_input_tokens: toCount(last.cachedInputTokens),
        cache_write_tokens: toCount(last.cacheWriteInputTokens),
        output_tokens: toCount(last.outputTokens),
        reasoning_tokens: toCount(last.reasoningOutputTokens),
        duration_ms: null,
        cost_micros: null,
        error_kind: null,
        // The wire has no id of a model call: the turn and the tokens up to here name it.
        model_call_id: `${bearing.turn_id}/${String(total.totalTokens ?? 0)}`,
      },
      scene,
    ),
  );
});

const settings = hookRule("settings", false, fields.settingsFields, ({ metadata }, scene) =>
  observe(
    toObservation(
      "agent.lifecycle.observed",
      {
        signal: "configuration_changed",
        detail: toShort(JSON.stringify(metadata.params?.threadSettings.approvalPolicy ?? null), 256),
        path: null,
      },
      scene,
    ),
  ),
);

/** What each message means that the proxy sends on, by its method. */
export const rules: ReadonlyMap<string, HookRule> = new Map([
  ["item/commandExecution/requestApproval", commandQuestion],
  ["item/fileChange/requestApproval", fileQuestion],
  ["item/permissions/requestApproval", permissionQuestion],
  ["mcpServer/elicitation/request", serverToolQuestion],
  ["item/tool/call", clientTool],
  ["thread/started", threadStart],
  ["turn/started", turnStart],
  ["turn/completed", turnEnd],
  ["item/completed", itemEnd],
  ["item/commandExecution/terminalInteraction", terminalInput],
  ["thread/tokenUsage/updated", usage],
  ["thread/settings/updated", settings],
]);
