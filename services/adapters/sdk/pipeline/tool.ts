import type { CallConstraints } from "../gate/gate-answer.ts";
import type { Json, JsonObject } from "../json.ts";

/** What a tool's body gets beside its input. */
export interface BodySurroundings {
  readonly callId: string;
  /** From 1; above 1 only for tools that may be repeated. */
  readonly attempt: number;
  /** Aborted when the time is up or the harness stops the call. */
  readonly signal: AbortSignal;
  readonly constraints: CallConstraints;
  /** The right that the resource verifies and spends; null for tools that need none. */
  readonly capability: { readonly id: string; readonly token: string | null } | null;
}

/** A tool of the harness. */
export interface Tool {
  /** In the fabric's form, such as `shell.run`: the name that policy knows. */
  readonly name: string;
  /**
   * Whether a call whose outcome is not known may be made again: only what reads, or what comes to the same when it is done
   * twice. Default: never.
   */
  readonly repeat?: "never" | "read_only" | "idempotent";
  /** Attempts of a tool that may be repeated; default 2. */
  readonly attempts?: number;
  /** Time of one attempt; default two minutes. */
  readonly timeoutMs?: number;
  /** What is wrong with an input, for the model to read; null: nothing. */
  readonly check?: (input: JsonObject) => string | null;
  /** Does it. The input is a copy of what was judged. */
  readonly body: (input: JsonObject, around: BodySurroundings) => Json | PromiseLike<Json>;
}

/** Thrown by a body that cannot tell whether the effect happened, such as after a lost answer. */
export class UnknownEffect extends Error {
  override readonly name = "UnknownEffect";
}

/** A call as the model proposes it. */
export interface ProposedCall {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly sessionId: string;
  readonly parentSessionId?: string;
  readonly turnId?: string;
  readonly agentId?: string;
  readonly workingDirectory?: string;
  readonly permissionMode?: string;
  readonly traceparent?: string;
}
