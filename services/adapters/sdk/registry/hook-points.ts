import type { Json, JsonObject } from "../json.ts";

/** Where something happens. Ids are the harness' own and unique within their session. */
export interface Place {
  readonly sessionId: string;
  /** The session that started this one. */
  readonly parentSessionId?: string;
  readonly turnId?: string;
  readonly agentId?: string;
}

/** A tool call as it would run: `input` is frozen, a changed one is returned as `rewrite`. */
export interface HookedCall {
  readonly id: string;
  /** In the fabric's form, such as `shell.run`. */
  readonly tool: string;
  readonly input: JsonObject;
  readonly workingDirectory?: string;
  /** `model`, or `hook:<name>` when a handler makes the call. */
  readonly origin: string;
}

export type Outcome = "succeeded" | "failed" | "interrupted" | "blocked" | "unknown";
/** Who kept a call from running. */
export type Blocker = "hook" | "gate" | "approval" | "guard";

/** What each point tells its handlers. */
export interface HookEvents {
  readonly ConfigLoaded: {
    readonly sessionId: string;
    /** Where the handlers came from. */
    readonly source: string;
    /** SHA-256 of the configuration, `sha256:` and hex. */
    readonly digest: string;
    readonly handlers: readonly string[];
  };
  readonly SessionStart: Place & {
    readonly source: "startup" | "resume" | "clear" | "compact" | "fork";
    readonly model?: string;
    readonly workingDirectory?: string;
  };
  readonly SessionEnd: Place & { readonly reason: string };
  readonly UserPromptSubmit: Place & { readonly prompt: string };
  readonly TurnStart: Place & { readonly trigger: "prompt" | "resume" | "subagent" };
  readonly TurnEnd: Place & {
    readonly outcome: Outcome;
    readonly finalMessage?: string;
    readonly errorKind?: string;
    readonly continuedByHook?: boolean;
  };
  readonly Stop: Place & { readonly finalMessage?: string; readonly continuedByHook: boolean };
  readonly ModelCompleted: Place & {
    readonly model: string;
    readonly outcome: Outcome;
    /** The model's own id of the call: two events with the same one tell of one call. */
    readonly modelCallId?: string;
    /** All input once: cached and cache-written tokens are part of it. */
    readonly inputTokens?: number;
    readonly cachedInputTokens?: number;
    readonly cacheWriteTokens?: number;
    readonly outputTokens?: number;
    readonly reasoningTokens?: number;
    readonly durationMs?: number;
    readonly errorKind?: string;
  };
  readonly PreToolUse: Place & { readonly call: HookedCall };
  readonly PostToolUse: Place & {
    readonly call: HookedCall;
    readonly output: Json;
    readonly durationMs: number;
  };
  readonly PostToolUseFailure: Place & {
    readonly call: HookedCall;
    readonly error: string;
    readonly outcome: "failed" | "interrupted" | "unknown";
    readonly durationMs: number;
  };
  readonly ToolBlocked: Place & {
    readonly call: HookedCall;
    readonly by: Blocker;
    /** The handler that said no, where one did. */
    readonly handler?: string;
    readonly reasonCode: string;
    readonly message: string;
  };
  readonly SubagentStart: Place & { readonly subagentId: string; readonly kind?: string };
  readonly SubagentStop: Place & {
    readonly subagentId: string;
    readonly kind?: string;
    readonly outcome: Outcome;
    readonly finalMessage?: string;
  };
  readonly PreCompact: Place & { readonly trigger: "manual" | "automatic" };
  readonly PostCompact: Place & { readonly trigger: "manual" | "automatic"; readonly summaryBytes?: number };
}
export type HookPoint = keyof HookEvents;

interface WithContext {
  /** Text for the model. */
  readonly context?: string;
}
interface Deny {
  /** Why not; the model reads it. */
  readonly deny?: string;
}

/** What a policy handler may say at each point; nothing at all means that it has no opinion. */
export interface HookReplies {
  readonly SessionStart: Deny & WithContext;
  readonly UserPromptSubmit: Deny & WithContext & { readonly rewrite?: string };
  readonly PreToolUse: Deny &
    WithContext & {
      /** The whole input in place of the one asked for. */
      readonly rewrite?: JsonObject;
      /** A person has to agree first; the text says to what. */
      readonly ask?: string;
    };
  readonly PostToolUse: WithContext & {
    /** The result is withheld; the model reads this instead. The effect has happened. */
    readonly block?: string;
    readonly replace?: Json;
  };
  readonly PostToolUseFailure: WithContext & {
    /** What the tool says of its failure is withheld; the model reads this instead. */
    readonly block?: string;
  };
  readonly SubagentStart: Deny & WithContext;
  readonly PreCompact: Deny;
  /** The agent goes on, with this to do. */
  readonly Stop: { readonly goOn?: string };
}
export type PolicyPoint = keyof HookReplies;
export type ReplyKey = "deny" | "ask" | "rewrite" | "context" | "block" | "replace" | "goOn";

/** What becomes of an event when a policy handler fails there. */
export type OnFailure = "deny" | "skip";

/** What handlers may say at a point, and what their failure does. At a point that is not listed everybody observes. */
export const voices: {
  readonly [P in PolicyPoint]: { readonly keys: readonly ReplyKey[]; readonly onFailure: OnFailure };
} = {
  SessionStart: { keys: ["deny", "context"], onFailure: "deny" },
  UserPromptSubmit: { keys: ["deny", "rewrite", "context"], onFailure: "deny" },
  PreToolUse: { keys: ["deny", "ask", "rewrite", "context"], onFailure: "deny" },
  PostToolUse: { keys: ["block", "replace", "context"], onFailure: "deny" },
  PostToolUseFailure: { keys: ["block", "context"], onFailure: "deny" },
  SubagentStart: { keys: ["deny", "context"], onFailure: "deny" },
  PreCompact: { keys: ["deny"], onFailure: "deny" },
  // A broken check must not keep an agent going for ever.
  Stop: { keys: ["goOn"], onFailure: "skip" },
};

/** Every point, in the order of a session. */
export const hookPoints = [
  "ConfigLoaded",
  "SessionStart",
  "UserPromptSubmit",
  "TurnStart",
  "ModelCompleted",
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "ToolBlocked",
  "SubagentStart",
  "SubagentStop",
  "PreCompact",
  "PostCompact",
  "Stop",
  "TurnEnd",
  "SessionEnd",
] as const satisfies readonly HookPoint[];

/** Whether handlers of a point may say something. */
export function isPolicyPoint(point: HookPoint): point is PolicyPoint {
  return Object.hasOwn(voices, point);
}
