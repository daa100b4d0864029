import { canonicalDigest } from "../../../platform/canonical-json.ts";
import type { Json, JsonObject } from "../json.ts";
import { isJsonObject, toFrozenObject } from "../json.ts";
import type { AgentContext, IdentityProvider, InterceptionPoint } from "./interception.ts";
import { HostFault, interceptionPoints } from "./interception.ts";

type Check = (value: Json | undefined) => boolean;
const isText: Check = (value) => typeof value === "string";
const isName: Check = (value) => typeof value === "string" && value !== "";
const isFlag: Check = (value) => typeof value === "boolean";
const isContent: Check = (value) => typeof value === "string" || isJsonObject(value);
const isAny: Check = (value) => value !== undefined;
const isObject: Check = (value) => isJsonObject(value);
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && (value as readonly Json[]).every((item) => check(item));
const has =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isJsonObject(value) && Object.entries(fields).every(([key, check]) => check(own(value, key)));

const own = (value: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(value, key) ? value[key] : undefined;

const toolCall = { id: isName, name: isName, args: isObject };
/** Fields that each point has to have, with their types; they alone make the identity. */
const conditional: Readonly<
  Record<InterceptionPoint, Readonly<Record<string, Readonly<Record<string, Check>> | Check>>>
> = {
  agent_startup: { agent_init: { tools_registered: isListOf(isText) } },
  input: {
    input: { content: isContent, role: (value) => ["user", "system", "external"].includes(value as string) },
  },
  pre_model_call: { model: { id: isText }, messages: isListOf(has({ role: isText, content: isAny })) },
  post_model_call: {
    model: { id: isText },
    response: {
      content: (value) => value === null || isContent(value),
      tool_calls: isListOf(has({ name: isText, args: isObject })),
      finish_reason: isText,
    },
  },
  pre_tool_call: { tool_call: toolCall },
  post_tool_call: { tool_call: toolCall, tool_result: { value: isAny, is_error: isFlag } },
  output: { output: { content: isContent } },
  agent_shutdown: {
    summary: { reason: (value) => ["completed", "error", "cancelled"].includes(value as string) },
  },
};
const core: Readonly<Record<string, Readonly<Record<string, Check>> | Check>> = {
  spec: (value) => typeof value === "string" && /^agent-hooks\/\d+\.\d+$/.test(value),
  interception_point: (value) => (interceptionPoints as readonly unknown[]).includes(value),
  timestamp: isName,
  sequence: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  agent: { id: isName, framework: (value) => typeof value === "string" && /^[a-z0-9_-]+$/.test(value) },
  session: { id: isName },
  target: isAny,
};

/** The point of a context. Throws `HostFault` when it is none of the eight. */
export function pointOf(context: AgentContext): InterceptionPoint {
  const point = own(context, "interception_point");
  if ((interceptionPoints as readonly unknown[]).includes(point)) return point as InterceptionPoint;
  throw new HostFault("host_error:context_invalid", "interception_point is none of the eight");
}

/** Throws `HostFault` when a context lacks a field of its point, or has it in another type. Names paths, never values. */
export function checkContext(context: AgentContext): void {
  for (const [key, want] of Object.entries({ ...core, ...conditional[pointOf(context)] })) {
    const check = typeof want === "function" ? want : has(want);
    if (!check(own(context, key)))
      throw new HostFault("host_error:context_invalid", `${key} is missing or wrong`);
  }
}

/** Where the target of each point stands beside `target` itself. */
const targetPaths: Readonly<Record<InterceptionPoint, readonly string[]>> = {
  agent_startup: ["agent_init"],
  input: ["input"],
  pre_model_call: ["messages"],
  post_model_call: ["response"],
  pre_tool_call: ["tool_call", "args"],
  post_tool_call: ["tool_result", "value"],
  output: ["output"],
  agent_shutdown: ["summary"],
};

/** A context with another target, in both places where it stands. */
export function withTarget(context: AgentContext, target: Json): AgentContext {
  const write = (value: Json | undefined, [key, ...rest]: readonly string[]): Json =>
    key === undefined
      ? target
      : {
          ...(isJsonObject(value) ? value : {}),
          [key]: write(isJsonObject(value) ? value[key] : undefined, rest),
        };
  const [first = "", ...rest] = targetPaths[pointOf(context)];
  return toFrozenObject({ ...context, target, [first]: write(context[first], rest) });
}

/** The fields that count, and none beside: further data never changes an identity. */
export function toPreimage(context: AgentContext): JsonObject {
  const kept: [string, Json][] = [];
  for (const [key, want] of Object.entries({ ...core, ...conditional[pointOf(context)] })) {
    const value = own(context, key);
    if (value === undefined) continue;
    if (typeof want === "function" || !isJsonObject(value)) kept.push([key, value]);
    else kept.push([key, pick(value, Object.keys(want))]);
  }
  return Object.fromEntries(kept);
}

function pick(value: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => keys.includes(key)));
}

/** The identity of a context by a provider. Throws `HostFault` when the provider cannot give one. */
export function identify(provider: IdentityProvider, context: AgentContext): string | null {
  if (provider === null) return null;
  if (provider === "jcs-sha256") {
    const preimage = toPreimage(context);
    checkNumbers(preimage);
    try {
      return canonicalDigest(preimage);
    } catch {
      throw new HostFault("host_error:context_invalid", "the context has no canonical form");
    }
  }
  let identity: unknown;
  try {
    identity = provider.identify(context);
  } catch {
    throw new HostFault("host_error:context_invalid", "the identity provider failed");
  }
  if (typeof identity !== "string")
    throw new HostFault("host_error:context_invalid", "the identity is no text");
  return identity;
}

/** From here on a number's canonical form has an exponent: it was never written as an integer. */
const exponentFrom = 1e21;

/** Beyond 2^53 two integers would have one identity. */
function checkNumbers(value: Json): void {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    if (Math.abs(value) < exponentFrom)
      throw new HostFault("host_error:context_invalid", "an integer exceeds 2^53: write it as a text");
  }
  if (typeof value !== "object" || value === null) return;
  for (const member of Object.values<Json>(value as JsonObject)) checkNumbers(member);
}
