import type { Json, JsonObject } from "../json.ts";
import { toFrozenObject } from "../json.ts";
import type { HookedCall } from "../registry/hook-points.ts";
import type { HookRegistry } from "../registry/registry.ts";
import type { Composed } from "./compose.ts";
import { compose } from "./compose.ts";
import { consult } from "./consult.ts";
import { checkContext, identify } from "./context.ts";
import type {
  AgentContext,
  ApprovalResolver,
  Composition,
  HostError,
  IdentityProvider,
  InterceptionPoint,
  Interceptor,
  Verdict,
} from "./interception.ts";
import { HostFault, toHostDeny } from "./interception.ts";
import { toRecordedVerdict } from "./verdict.ts";

export interface InterceptorHostOptions {
  readonly agent: { readonly id: string; readonly framework: string };
  readonly sessionId: string;
  readonly interceptors: readonly Interceptor[];
  /** Default: the first deny ends it, and a person's yes too. */
  readonly composition?: Composition;
  /** `evaluate_only` records verdicts and holds nothing back. Default: `enforce`. */
  readonly mode?: "enforce" | "evaluate_only";
  readonly resolver?: ApprovalResolver | null;
  readonly redactForApproval?: (context: AgentContext) => AgentContext;
  /** Default: `jcs-sha256`. */
  readonly identityProvider?: IdentityProvider;
  /** Time of an interceptor and of a resolver; default 5 s, as the contract recommends. */
  readonly timeoutMs?: number;
  /** Where records go, one per emission, in order. */
  readonly onRecord?: (record: JsonObject) => void;
}

/** What became of one emission. */
export interface Emitted {
  readonly proceeds: boolean;
  readonly verdict: Verdict;
  /** What the action is to work on. */
  readonly target: Json;
}

/** A host of AGENT-HOOKS-0.1: interceptors stand at the eight points of an agent's loop. */
export interface InterceptorHost {
  startup(tools: readonly string[]): Promise<Emitted>;
  input(content: Json, role: "user" | "system" | "external"): Promise<Emitted>;
  beforeModel(model: string, messages: readonly JsonObject[]): Promise<Emitted>;
  afterModel(model: string, response: JsonObject): Promise<Emitted>;
  output(content: Json): Promise<Emitted>;
  shutdown(reason: "completed" | "error" | "cancelled"): Promise<Emitted>;
  /** Puts the interceptors before and after the tools of a pipeline; returns the uninstall. */
  attach(hooks: HookRegistry): () => void;
}

const spec = "agent-hooks/0.1";
const defaultTimeoutMs = 5_000;
/** The interceptors have time limits of their own, and a person takes as long as a person takes. */
const unlimitedMs = 2 ** 31 - 1;

/**
 * Makes a host for one session. Declared: all eight points, `sequential/first_deny` and `sequential/run_all`, both modes,
 * the approval seam, `jcs-sha256`, a provider of one's own or none.
 */
export function createInterceptorHost(options: InterceptorHostOptions): InterceptorHost {
  const { interceptors, sessionId, agent } = options;
  const composition = options.composition ?? { profile: "sequential/first_deny", on_approval: "stop" };
  const provider = options.identityProvider === undefined ? "jcs-sha256" : options.identityProvider;
  if (provider !== null && typeof provider === "object" && !/^(?!jcs)[a-z][a-z0-9_-]*$/.test(provider.name))
    throw new RangeError("a provider of one's own has a name in lower case that does not begin with jcs");
  const mode = options.mode ?? "enforce";
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const { resolver = null, redactForApproval: redact } = options;
  let sequence = 0;

  async function emit(point: InterceptionPoint, fields: JsonObject, target: Json): Promise<Emitted> {
    const surroundings = {
      spec,
      interception_point: point,
      timestamp: new Date().toISOString(),
      sequence: sequence++,
      agent,
      session: { id: sessionId },
    };
    let context: AgentContext = surroundings;
    let inputIdentity: string | null = null;
    let composed: Composed;
    try {
      context = toContext({ ...surroundings, ...fields, target });
      checkContext(context);
      inputIdentity = identify(provider, context);
      composed =
        interceptors.length === 0
          ? toRejected(context, "host_error:no_interceptor")
          : await compose(interceptors, context, {
              composition,
              enforces: mode === "enforce",
              timeoutMs,
              consult:
                resolver === null
                  ? null
                  : (verdict, shown) =>
                      consult(verdict, shown, {
                        ...{ resolver, provider, timeoutMs },
                        ...(redact === undefined ? {} : { redact }),
                      }),
            });
    } catch (error) {
      if (!(error instanceof HostFault)) throw error;
      inputIdentity = null;
      composed = toRejected(context, error.reason, error.message);
    }
    let enforcedIdentity = inputIdentity;
    if (inputIdentity !== null && composed.context !== context) {
      try {
        enforcedIdentity = identify(provider, composed.context);
      } catch (error) {
        if (!(error instanceof HostFault)) throw error;
        composed = { ...composed, combined: toHostDeny(error.reason, error.message), decidedBy: null };
      }
    }
    options.onRecord?.(toRecord(point, surroundings, composed, inputIdentity, enforcedIdentity));
    const proceeds = mode === "evaluate_only" || composed.combined.decision !== "deny";
    const worked = proceeds && mode === "enforce" ? composed.context : context;
    return { proceeds, verdict: composed.combined, target: worked["target"] ?? target };
  }

  function toRecord(
    point: InterceptionPoint,
    around: { readonly timestamp: string; readonly sequence: number },
    { combined, decidedBy, verdicts, isTruncated, resolvedBy }: Composed,
    inputIdentity: string | null,
    enforcedIdentity: string | null,
  ): JsonObject {
    return toFrozenObject({
      interception_point: point,
      mode,
      verdict: toRecordedVerdict(combined),
      input_identity: inputIdentity,
      enforced_identity: enforcedIdentity,
      identity_provider: provider !== null && typeof provider === "object" ? provider.name : provider,
      session_id: sessionId,
      sequence: around.sequence,
      timestamp: around.timestamp,
      decided_by: decidedBy,
      composition,
      verdicts: verdicts.map(({ decision, reason }, index) => {
        const name = interceptors[index]?.name;
        return {
          index,
          decision,
          ...(reason == null ? {} : { reason }),
          ...(name === undefined ? {} : { name }),
        };
      }),
      fold_truncated: isTruncated,
      ...(resolvedBy === null ? {} : { resolved_by: resolvedBy }),
      interceptors_registered: interceptors.length,
    });
  }

  const beforeTool = ({ id, tool, input }: HookedCall): Promise<Emitted> =>
    emit("pre_tool_call", { tool_call: { id, name: tool, args: input } }, input);
  const afterTool = ({ id, tool, input }: HookedCall, value: Json, isError: boolean): Promise<Emitted> =>
    emit(
      "post_tool_call",
      { tool_call: { id, name: tool, args: input }, tool_result: { value, is_error: isError } },
      value,
    );

  return {
    startup: (tools) => emitField("agent_startup", "agent_init", { tools_registered: tools }),
    input: (content, role) => emitField("input", "input", { content, role }),
    beforeModel: (model, messages) => emit("pre_model_call", { model: { id: model }, messages }, messages),
    afterModel: (model, response) => emit("post_model_call", { model: { id: model }, response }, response),
    output: (content) => emitField("output", "output", { content }),
    shutdown: (reason) => emitField("agent_shutdown", "summary", { reason }),
    attach(hooks) {
      const rules = { timeoutMs: unlimitedMs };
      const uninstalls = [
        hooks.hook(
          "PreToolUse",
          async ({ call }) => {
            const { proceeds, verdict, target } = await beforeTool(call);
            if (!proceeds) return { deny: toText(verdict) };
            return target === call.input ? null : { rewrite: target as JsonObject };
          },
          { name: "interceptors before the tool", ...rules },
        ),
        hooks.hook(
          "PostToolUse",
          async ({ call, output }) => {
            const { proceeds, verdict, target } = await afterTool(call, output, false);
            if (!proceeds) return { block: toText(verdict) };
            return target === output ? null : { replace: target };
          },
          { name: "interceptors after the tool", ...rules },
        ),
        hooks.hook(
          "PostToolUseFailure",
          async ({ call, error }) => {
            const { proceeds, verdict } = await afterTool(call, error, true);
            return proceeds ? null : { block: toText(verdict) };
          },
          { name: "interceptors after a failed tool", ...rules },
        ),
      ];
      return () => {
        for (const uninstall of uninstalls) uninstall();
      };
    },
  };

  function emitField(point: InterceptionPoint, field: string, value: JsonObject): Promise<Emitted> {
    return emit(point, { [field]: value }, value);
  }
}

function toContext(given: object): AgentContext {
  try {
    return toFrozenObject(given);
  } catch {
    throw new HostFault("host_error:context_invalid", "the context is no JSON");
  }
}

/** A deny before anybody was asked. */
function toRejected(context: AgentContext, reason: HostError, message?: string): Composed {
  return {
    combined: toHostDeny(reason, message),
    context,
    decidedBy: null,
    verdicts: [],
    isTruncated: false,
    resolvedBy: null,
  };
}

/** What the model reads of a deny. */
function toText({ reason, message }: Verdict): string {
  return [reason ?? "denied", message].filter((part) => part != null && part !== "").join(": ");
}
