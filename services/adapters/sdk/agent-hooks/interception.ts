import type { Json, JsonObject } from "../json.ts";

/** The eight points of AGENT-HOOKS-0.1, in the order of a session. */
export const interceptionPoints = [
  "agent_startup",
  "input",
  "pre_model_call",
  "post_model_call",
  "pre_tool_call",
  "post_tool_call",
  "output",
  "agent_shutdown",
] as const;
export type InterceptionPoint = (typeof interceptionPoints)[number];

/** What an interceptor is shown. */
export type AgentContext = JsonObject;

export interface Warning {
  readonly reason?: string | null;
  readonly message?: string | null;
}
/** What an interceptor says. A deny with `approval` may be lifted by a person. */
export interface Verdict {
  readonly decision: "allow" | "deny" | "transform";
  readonly reason?: string | null;
  readonly message?: string | null;
  readonly warnings?: readonly Warning[] | null;
  readonly approval?: JsonObject;
  readonly transform?: { readonly path: string; readonly value?: Json };
  readonly evidence?: JsonObject;
  readonly result_labels?: readonly string[] | null;
}
export interface Interceptor {
  /** Names it in records. */
  readonly name?: string;
  /** The context is a copy of its own. Whatever is no verdict is a deny. */
  intercept(context: AgentContext): unknown;
}

/** Which verdict of several counts, and what a person's word may do. */
export type Composition =
  | { readonly profile: "sequential/first_deny"; readonly on_approval: "stop" | "resume" }
  | { readonly profile: "sequential/run_all" };

/** Where a liftable deny goes. Whatever is no resolution lifts nothing. */
export interface ApprovalResolver {
  resolve(request: {
    readonly context_identity: string | null;
    readonly interception_point: InterceptionPoint;
    readonly verdict: Verdict;
    readonly context: AgentContext;
  }): unknown;
}

/** `null`: records and approvals are bound to no content, and say so. */
export type IdentityProvider =
  "jcs-sha256" | null | { readonly name: string; readonly identify: (context: AgentContext) => string };

/** Reasons that only the host gives. */
export type HostError =
  | "host_error:context_invalid"
  | "host_error:interceptor_failed"
  | "host_error:interceptor_timeout"
  | "host_error:verdict_invalid"
  | "host_error:transform_invalid"
  | "host_error:transform_target_forbidden"
  | "host_error:approval_resolver_failed"
  | "host_error:approval_unresolved"
  | "host_error:approval_identity_mismatch"
  | "host_error:no_interceptor";

/** A step that ends in a deny of the host. */
export class HostFault extends Error {
  override readonly name = "HostFault";
  readonly reason: HostError;
  constructor(reason: HostError, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The deny that a fault of the host amounts to. */
export function toHostDeny(reason: HostError, message?: string): Verdict {
  return message === undefined ? { decision: "deny", reason } : { decision: "deny", reason, message };
}
