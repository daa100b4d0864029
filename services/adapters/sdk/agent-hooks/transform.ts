import type { Json } from "../json.ts";
import { isJsonObject } from "../json.ts";
import { checkContext, pointOf, withTarget } from "./context.ts";
import type { AgentContext, Verdict } from "./interception.ts";
import { HostFault } from "./interception.ts";

type Segment = string | number;

/** Reads a path below `$target`. Throws `HostFault`: foreign when it is rooted elsewhere, else not a path. */
export function parsePath(path: string): readonly Segment[] {
  const root = /^\$(?:target|policy_target)(?=[.[]|$)/.exec(path)?.[0];
  if (root === undefined)
    throw new HostFault("host_error:transform_target_forbidden", "a path starts at $target");
  const segments: Segment[] = [];
  const segment = /\.([A-Za-z0-9_-]+)|\[(\d+)\]|\["([A-Za-z0-9_-]+)"\]/y;
  let at = root.length;
  while (at < path.length) {
    segment.lastIndex = at;
    const found = segment.exec(path);
    if (found === null) throw new HostFault("host_error:transform_invalid", "a path has members and indexes");
    segments.push(found[2] === undefined ? (found[1] ?? found[3] ?? "") : Number(found[2]));
    at = segment.lastIndex;
  }
  return segments;
}

/** The context with one place of its target replaced. Throws `HostFault` when the place is not there. */
export function applyTransform(
  context: AgentContext,
  transform: NonNullable<Verdict["transform"]>,
): AgentContext {
  const point = pointOf(context);
  if (point === "agent_startup" || point === "agent_shutdown") {
    throw new HostFault(
      "host_error:transform_target_forbidden",
      "nothing is transformed at the ends of a session",
    );
  }
  const target = replace(context["target"] as Json, parsePath(transform.path), transform.value ?? null);
  const changed = withTarget(context, target);
  try {
    checkContext(changed);
  } catch {
    throw new HostFault("host_error:transform_invalid", "the target would not be one any more");
  }
  return changed;
}

function replace(value: Json, [first, ...rest]: readonly Segment[], by: Json): Json {
  if (first === undefined) return by;
  if (typeof first === "number" && Array.isArray(value) && first < value.length) {
    return (value as readonly Json[]).map((item, at) => (at === first ? replace(item, rest, by) : item));
  }
  if (typeof first === "string" && isJsonObject(value) && Object.hasOwn(value, first)) {
    return { ...value, [first]: replace(value[first] as Json, rest, by) };
  }
  throw new HostFault("host_error:transform_invalid", "the path leads nowhere");
}
