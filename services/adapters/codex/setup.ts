import { isAtLeast } from "../../platform/client-version.ts";
import type { HookHandler } from "../../platform/hook-settings.ts";
import {
  listHandlers,
  parseSettings,
  toSettingsWithHooks,
  toSettingsWithoutHooks,
} from "../../platform/hook-settings.ts";
import type { FileEdit, InstallTarget, RuntimeSetup } from "../../platform/runtime-room.ts";
import { giveConsent, readConsent, showConsent } from "./consent.ts";
import { hasFeatureOff, withFeatureOff, withoutFeatureLine } from "./feature-line.ts";

/** The first version with which everything here was seen; what earlier ones do with a hook that fails is not known. */
const firstKnown = "0.169.0";
/** While it is on, what is typed into a running shell passes every hook. */
const stdinGap = "unified_exec_tty";

const gating = ["PreToolUse", "PermissionRequest"] as const;
const told = [
  "PostToolUse",
  "SessionStart",
  "SessionEnd",
  "UserPromptSubmit",
  "PostModelRequest",
  "SubagentStart",
  "SubagentStop",
  "PreCompact",
  "PostCompact",
  "Stop",
  "Interrupt",
] as const;
/** The client cuts the last two to three seconds. */
const commandGraceSeconds = 5;

const hooksPath = (target: InstallTarget): string => `${target.home}/.codex/hooks.json`;
const configPath = (target: InstallTarget): string => `${target.home}/.codex/config.toml`;

/** One invalid entry drops the client's whole file: `command` with a positive limit is all that is ever written. */
const toHandler = (command: string, deadlineMs: number): HookHandler => ({
  type: "command",
  command,
  timeout: Math.ceil(deadlineMs / 1000) + commandGraceSeconds,
});

/** Whether a hook's command is one of ours. */
const isOurs =
  (target: InstallTarget) =>
  ({ command }: HookHandler): boolean =>
    typeof command === "string" && command.includes(target.fabricDir);

function edits(target: InstallTarget): readonly FileEdit[] {
  const path = hooksPath(target);
  const config = configPath(target);
  const ours = isOurs(target);
  const gate = toHandler(target.gatingCommand, target.gatingDeadlineMs + target.approvalWaitMs);
  const tell = toHandler(target.observingCommand, target.observingDeadlineMs);
  const handlers = Object.fromEntries([
    ...gating.map((event) => [event, gate] as const),
    ...told.map((event) => [event, tell] as const),
  ]);
  return [
    {
      path,
      toInstalled: (before) => toSettingsWithHooks(before, { path, isOurs: ours, handlers }),
      toRemoved: (text) => toSettingsWithoutHooks(text, { path, isOurs: ours }),
    },
    {
      path: config,
      toInstalled: (before) => withFeatureOff(before, stdinGap, config),
      toRemoved(text) {
        const left = withoutFeatureLine(text);
        return left.trim() === "" ? null : left;
      },
    },
  ];
}

function findOpenings(textOf: (path: string) => string | null, target: InstallTarget): readonly string[] {
  const openings: string[] = [];
  const config = textOf(configPath(target)) ?? "";
  if (hasFeatureOff(config, "hooks")) openings.push(`\`[features] hooks = false\` in ${configPath(target)}`);
  if (!hasFeatureOff(config, stdinGap)) {
    openings.push(
      `\`[features] ${stdinGap} = false\` is missing in ${configPath(target)}: what is typed into a running shell passes every hook`,
    );
  }
  const path = hooksPath(target);
  for (const { event, handler } of listHandlers(parseSettings(textOf(path), path))) {
    const { type, timeout } = handler;
    if (!["command", "mcp_tool", "prompt", "agent"].includes(String(type)) || Number(timeout ?? 1) <= 0) {
      openings.push(
        `a hook of ${event} in ${path} has a type or a timeout that the client does not know: it drops the whole file`,
      );
    }
  }
  return openings;
}

/** Where this client's hooks live, and which versions can be made fail-closed. */
export const setup: RuntimeSetup = {
  program: "codex",
  forms: ["shell", "node"],
  refuse: (version) =>
    isAtLeast(version, firstKnown)
      ? null
      : `Codex ${version} is older than ${firstKnown}: what it does when a hook fails was never seen, and it has no setting against it; update it`,
  edits,
  consent: { show: showConsent, give: giveConsent, state: readConsent },
  findOpenings,
};
