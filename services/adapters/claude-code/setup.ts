import { isAtLeast } from "../../platform/client-version.ts";
import type { HookHandler } from "../../platform/hook-settings.ts";
import {
  listHandlers,
  parseSettings,
  toSettingsWithHooks,
  toSettingsWithoutHooks,
} from "../../platform/hook-settings.ts";
import { isJsonObject } from "../../platform/payload-fields.ts";
import type { FileEdit, InstallTarget, RuntimeSetup } from "../../platform/runtime-room.ts";

/** The first version in which `onFailure: "block"` counts; earlier ones ignore the key and run the tool. */
const firstClosing = "2.1.295";

const gating = ["PreToolUse", "PermissionRequest"] as const;
/** Awaited, because what a result carries labels the session before its next call is judged. */
const results = ["PostToolUse", "PostToolUseFailure"] as const;
/**
 * By command in every form: the client never calls HTTP hooks for a session's start, and a command spools what the gate
 * does not take. Left out: the worktree's creation, which a hook would take over, and what is told with each word shown.
 */
const told = [
  "SessionStart",
  "SessionEnd",
  "UserPromptSubmit",
  "UserPromptExpansion",
  "PermissionDenied",
  "SubagentStart",
  "SubagentStop",
  "Stop",
  "StopFailure",
  "PreCompact",
  "PostCompact",
  "PostModelSwitch",
  "Notification",
  "TaskCreated",
  "TaskCompleted",
  "ConfigChange",
  "CwdChanged",
  "DirectoryAdded",
] as const;

/** The client counts in seconds; a command's limit leaves it time to say no by itself. */
const commandGraceSeconds = 5;
const toSeconds = (ms: number): number => Math.ceil(ms / 1000);
/** The gate ends its own wait below this; the client's limit is the last resort. */
const knownTypes = ["command", "http", "mcp_tool", "prompt", "agent"];

const settingsPath = (target: InstallTarget): string => `${target.home}/.claude/settings.json`;
const hooksHeader = "x-fabric-hooks";

const toHttp = (target: InstallTarget, deadlineMs: number): HookHandler => ({
  type: "http",
  url: `${target.gateUrl}/v1/hooks/claude-code`,
  headers: { authorization: `Bearer ${target.token}`, [hooksHeader]: target.configurationHash },
  timeout: toSeconds(deadlineMs),
});
const toCommand = (command: string, deadlineMs: number): HookHandler => ({
  type: "command",
  command,
  timeout: toSeconds(deadlineMs) + commandGraceSeconds,
});

function toHandlers(target: InstallTarget): Readonly<Record<string, HookHandler>> {
  const isHttp = target.form === "http";
  const gate = {
    ...(isHttp
      ? toHttp(target, target.gatingDeadlineMs)
      : toCommand(target.gatingCommand, target.gatingDeadlineMs + target.approvalWaitMs)),
    onFailure: "block",
  };
  const tell = toCommand(target.observingCommand, target.observingDeadlineMs);
  const result = isHttp ? toHttp(target, target.observingDeadlineMs) : tell;
  return Object.fromEntries([
    ...gating.map((event) => [event, gate] as const),
    ...results.map((event) => [event, result] as const),
    ...told.map((event) => [event, tell] as const),
  ]);
}

const isOurs =
  (target: InstallTarget) =>
  (handler: HookHandler): boolean => {
    const { headers, command } = handler;
    return (
      (isJsonObject(headers) && Object.hasOwn(headers, hooksHeader)) ||
      (typeof command === "string" && command.includes(target.fabricDir))
    );
  };

function edits(target: InstallTarget): readonly FileEdit[] {
  const path = settingsPath(target);
  const ours = isOurs(target);
  return [
    {
      path,
      // The client reads the token of an HTTP hook from this file or from its environment, and from nowhere else.
      ...(target.form === "http" ? { mode: 0o600 } : {}),
      toInstalled: (before) =>
        toSettingsWithHooks(before, { path, isOurs: ours, handlers: toHandlers(target) }),
      toRemoved: (text) => toSettingsWithoutHooks(text, { path, isOurs: ours }),
    },
  ];
}

/** One such entry, and the client ignores the whole file in silence. */
const isBad = (handler: HookHandler): boolean =>
  !knownTypes.includes(String(handler["type"])) ||
  (handler["timeout"] !== undefined && !(typeof handler["timeout"] === "number" && handler["timeout"] > 0));

function findOpenings(textOf: (path: string) => string | null, target: InstallTarget): readonly string[] {
  const openings: string[] = [];
  const path = settingsPath(target);
  const settings = parseSettings(textOf(path), path);
  if (settings["disableAllHooks"] === true)
    openings.push(`\`disableAllHooks\` in ${path} switches every hook off`);
  for (const { event, handler } of listHandlers(settings)) {
    if (isBad(handler)) {
      openings.push(
        `a hook of ${event} in ${path} has a type or a timeout that the client does not know: it ignores the whole file`,
      );
    }
  }
  const urls = settings["allowedHttpHookUrls"];
  if (target.form === "http" && Array.isArray(urls) && urls.length === 0) {
    openings.push(`\`allowedHttpHookUrls\` in ${path} lets no HTTP hook through`);
  }
  const managedPath = "/etc/claude-code/managed-settings.json";
  const managed = textOf(managedPath);
  if (managed !== null && parseSettings(managed, managedPath)["allowManagedHooksOnly"] === true) {
    openings.push(
      `\`allowManagedHooksOnly\` in ${managedPath} leaves out the hooks of a person's own settings`,
    );
  }
  return openings;
}

/** Where this client's hooks live, and which versions can be made fail-closed. */
export const setup: RuntimeSetup = {
  program: "claude",
  forms: ["http", "shell", "node"],
  refuse: (version) =>
    isAtLeast(version, firstClosing)
      ? null
      : `Claude Code ${version} runs the tool when a hook fails: \`onFailure: "block"\` counts from ${firstClosing}; update it (an unpinned install on Node 20 picks an older one)`,
  edits,
  findOpenings,
};
