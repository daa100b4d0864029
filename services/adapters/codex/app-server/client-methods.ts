import { isJsonObject } from "../../../platform/payload-fields.ts";
import type { WireObject } from "./wire-message.ts";

/**
 * What a client may ask of the server through the proxy. Everything else is refused: many methods run commands, write files
 * or change settings without a question (thread/shellCommand, command/exec, process/spawn, fs/*, config/*write …), and a new
 * one is not known until somebody has looked.
 */
const allowed: ReadonlySet<string> = new Set([
  "initialize",
  "initialized",
  ...["thread/start", "thread/resume", "thread/fork", "thread/read", "thread/list", "thread/loaded/list"],
  ...["thread/archive", "thread/unarchive", "thread/unsubscribe", "thread/name/set", "thread/compact/start"],
  ...[
    "thread/turns/list",
    "thread/items/list",
    "thread/items/read",
    "thread/settings/update",
    "thread/search",
  ],
  ...["turn/start", "turn/steer", "turn/interrupt", "turn/settings/update"],
  ...[
    "model/list",
    "account/read",
    "account/rateLimits/read",
    "account/usage/read",
    "skills/list",
    "hooks/list",
  ],
  ...["config/read", "configRequirements/read", "mcpServerStatus/list", "experimentalFeature/list"],
  ...["permissionProfile/list", "collaborationMode/list", "app/list", "plugin/list", "fuzzyFileSearch"],
  ...["account/login/start", "account/login/cancel", "account/logout", "server/diagnostics", "memory/status"],
]);

/** How tightly threads are held. */
export interface Pins {
  /**
   * `keep`: as the client asks, but for no sandbox at all. An accepted command may then run twice, the second time outside
   * of it, and nothing on the wire tells. `none`: no sandbox, so that an accepted command runs once; the gate alone decides.
   */
  readonly sandbox: "keep" | "none";
}

/** Whether a client's message may go through; a text: why not. */
export function whyNot(method: string): string | null {
  return allowed.has(method)
    ? null
    : `${method} does not go through the policy gate: ask the agent to do it, or do it outside`;
}

const pinned: ReadonlySet<string> = new Set([
  "thread/start",
  "thread/resume",
  "thread/fork",
  "turn/start",
  "thread/settings/update",
  "turn/settings/update",
]);
const threadMethods = ["thread/start", "thread/resume", "thread/fork"];
/** Keys of a thread's own configuration that loosen it. */
const loosening =
  /^(approval_policy|approvals_reviewer|sandbox|permissions|features|hooks|rules|shell_environment_policy|default_permissions|profile)/;

/** The parameters with what holds a thread: every command asks, and a person's review stays a person's. */
export function toPinned(method: string, params: WireObject, { sandbox }: Pins): WireObject {
  if (!pinned.has(method)) return params;
  const { permissions: _permissions, sandbox: asked, sandboxPolicy: askedPolicy, config, ...rest } = params;
  const isThread = threadMethods.includes(method);
  const kept = sandbox === "none" ? {} : { ...toSandbox(asked), ...toSandboxPolicy(askedPolicy) };
  return {
    ...rest,
    approvalPolicy: "untrusted",
    approvalsReviewer: "user",
    ...kept,
    ...(sandbox === "none"
      ? isThread
        ? { sandbox: "danger-full-access" }
        : { sandboxPolicy: { type: "dangerFullAccess" } }
      : {}),
    ...(isThread
      ? {
          config: {
            ...(isJsonObject(config)
              ? Object.fromEntries(Object.entries(config).filter(([key]) => !loosening.test(key)))
              : {}),
            // Nothing asks before text is typed into a running terminal: there are none.
            "features.unified_exec_tty": false,
          },
        }
      : {}),
  };
}

function toSandbox(asked: unknown): WireObject {
  if (asked === undefined) return {};
  return { sandbox: asked === "read-only" ? "read-only" : "workspace-write" };
}
function toSandboxPolicy(asked: unknown): WireObject {
  if (!isJsonObject(asked)) return {};
  const isTight = asked["type"] === "readOnly" || asked["type"] === "workspaceWrite";
  return isTight ? { sandboxPolicy: asked } : {};
}
