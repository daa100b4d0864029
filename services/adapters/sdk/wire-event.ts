import type { JsonObject } from "./json.ts";
import { toFrozenObject } from "./json.ts";
import type { HookEvents, HookPoint } from "./registry/hook-points.ts";
import type { HookOutcome } from "./registry/registry.ts";

/** Raised when the SDK's events take another form. */
export const sdkVersion = "1.0.0";

const toSnake = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * An event as the gate takes it, with what the handlers made of it; null: it is recorded elsewhere. Pure. A call that the
 * gate itself refused is the gate's to record, and so is a call that it is asked about.
 */
export function toWireEvent<P extends HookPoint>(
  point: P,
  event: HookEvents[P],
  { denied, rewrittenBy }: Pick<HookOutcome<P>, "denied" | "rewrittenBy">,
): JsonObject | null {
  // A stop is told by the end of its turn.
  if (point === "PreToolUse" || point === "Stop") return null;
  const { call, ...rest } = event as HookEvents["ToolBlocked"];
  if (point === "ToolBlocked" && rest.by === "gate" && !rest.reasonCode.startsWith("GATE_")) return null;
  const fields = Object.entries(rest).map(([key, value]) => [toSnake(key), value] as const);
  const called =
    call === undefined
      ? {}
      : {
          call_id: call.id,
          tool: call.tool,
          input: call.input,
          working_directory: call.workingDirectory,
          origin: call.origin,
        };
  return toFrozenObject({
    event: point,
    sdk_version: sdkVersion,
    ...Object.fromEntries(fields),
    ...called,
    denied_by: denied?.handler,
    rewritten_by: rewrittenBy.length === 0 ? undefined : rewrittenBy,
  });
}
