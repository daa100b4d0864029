import { posix, win32 } from "node:path";
import type { Anchor, RuntimeReply, UnrecognizedHook } from "../../schemas/adapter.ts";
import { draft } from "../../schemas/envelope.ts";
import type { EffectClass, Runtime, UnrecognizedProblem } from "../../schemas/generated/types.ts";
import { toTextPreview } from "./masked-preview.ts";

/** Largest Avro int. */
const intMax = 2_147_483_647;
/** Largest token count or duration that an Avro long carries without loss here. */
const longMax = Number.MAX_SAFE_INTEGER - 1;
/** Longest fabric tool name. */
const toolNameMaxChars = 200;
/** A response nested deeper than this is not measured. */
const measuredMaxDepth = 512;

/** A size that fits an Avro int. */
export const toSize = (bytes: number): number =>
  Number.isFinite(bytes) ? Math.min(Math.max(Math.trunc(bytes), 0), intMax) : 0;
/** Bytes of a text in UTF-8. */
export const textBytes = (text: string): number => toSize(Buffer.byteLength(text, "utf8"));
/** Bytes of a message in UTF-8; null when there is none. */
export const toMessageBytes = (message: string | null | undefined): number | null =>
  message == null ? null : textBytes(message);

const isWithin = (value: unknown, maxDepth: number): boolean => {
  const open: [unknown, number][] = [[value, 0]];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const [item, depth] = one;
    if (typeof item !== "object" || item === null) continue;
    if (depth >= maxDepth) return false;
    for (const child of Object.values(item) as unknown[]) open.push([child, depth + 1]);
  }
  return true;
};
/** Bytes of a value: a string as its own text, all else as compact JSON; null when it is nested too deep to say. */
export function valueBytes(value: unknown): number | null {
  if (typeof value === "string") return textBytes(value);
  return isWithin(value, measuredMaxDepth) ? textBytes(JSON.stringify(value) ?? "") : null;
}
/** A count as an Avro long; null for what is not a whole number from 0. */
export const toCount = (value: unknown): bigint | null =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= longMax
    ? BigInt(value)
    : null;

/** A short text of the runtime, masked; null when it is absent. */
export const toShort = (text: string | undefined, maxChars = 128): string | null =>
  text === undefined ? null : toTextPreview(text, maxChars);

/** A path as the tool will see it: `..` and `.` resolved against the working directory; `~` is left as it stands. */
export function resolvePath(workingDirectory: string | undefined, path: string): string {
  if (path.startsWith("~")) return path;
  const isWindows = /^([A-Za-z]:[\\/]|\\\\)/;
  if (isWindows.test(path)) return win32.normalize(path);
  if (workingDirectory !== undefined && isWindows.test(workingDirectory))
    return win32.resolve(workingDirectory, path);
  if (path.startsWith("/") || !workingDirectory?.startsWith("/")) return posix.normalize(path);
  return posix.resolve(workingDirectory, path);
}

/**
 * One segment of a fabric tool name. What the name may not hold is written as `-0x<hex>-`, and a `-` before a literal
 * `0x` too, so that two different names stay two.
 */
export const toToolSegment = (name: string): string =>
  name.replace(/-(?=0x)|[^A-Za-z0-9_-]/gu, (one) => `-0x${(one.codePointAt(0) ?? 0).toString(16)}-`);
/** A tool name of these parts, or null when there is nothing to name or it is too long to be an index key. */
export function toToolName(family: string, segments: readonly string[]): string | null {
  const name = [family, ...segments.map(toToolSegment)].join(".");
  return segments.some((segment) => segment === "") || name.length > toolNameMaxChars ? null : name;
}

const effects: ReadonlyMap<string, EffectClass> = new Map<string, EffectClass>([
  ["shell.run", "execute"],
  ["file.write", "write"],
  ["file.edit", "write"],
  ["file.patch", "write"],
  ["file.read", "read"],
  ["file.search", "read"],
  ["web.fetch", "network"],
  ["web.search", "network"],
  ["agent.spawn", "spawn"],
  ["todo.write", "none"],
  ["workspace.enter", "write"],
  ["workspace.leave", "write"],
]);
/** What a fabric tool does to the world as far as its name tells; the gate's catalogue has the last word. */
export const effectOf = (tool: string): EffectClass => effects.get(tool) ?? "unknown";

/** Where a call happens in its session. */
export interface Place {
  readonly sessionId: string;
  readonly turnId?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly agentId?: string | undefined;
}
/** The places that can be the direct trigger, nearest first: call, child agent, turn, session. */
export function toCauses(place: Place, without: readonly Anchor["scope"][] = []): readonly Anchor[] {
  const all: readonly [Anchor["scope"], string | undefined][] = [
    ["call", place.toolCallId],
    ["subagent", place.agentId],
    ["turn", place.turnId],
    ["session", place.sessionId],
  ];
  return all.flatMap(([scope, id]) => (id === undefined || without.includes(scope) ? [] : [{ scope, id }]));
}

/** Leaves out what is undefined, so that an optional property is absent and not undefined. */
export function compact<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

/** What is known of a payload that is not understood. */
export interface Unrecognized {
  readonly runtime: Runtime;
  readonly place: Partial<Place>;
  readonly eventName: string | null;
  readonly phase: string | undefined;
  readonly problem: UnrecognizedProblem;
  readonly field: string | null;
  readonly bodyBytes: number;
  readonly gating: boolean;
}
/** The translation of a payload that is not understood. */
export function toUnrecognized(one: Unrecognized): UnrecognizedHook {
  const { sessionId, turnId, toolCallId, agentId } = one.place;
  return {
    kind: "unrecognized",
    call: compact({ sessionId, turnId, toolCallId, agentId, phase: one.phase }),
    runtime: one.runtime,
    draft: draft(
      "fabric.adapter.unrecognized",
      {
        problem: one.problem,
        field: one.field,
        event_name: one.eventName === null ? null : toTextPreview(one.eventName, 128),
        body_bytes: toSize(one.bodyBytes),
        gating: one.gating,
      },
      compact({
        runtime: one.runtime,
        agent_id: agentId,
        execution: compact({ session_id: sessionId, turn_id: turnId, tool_call_id: toolCallId }),
      }) as object,
    ),
    eventName: one.eventName,
  };
}

/** Nothing to say: the runtime goes on as if no hook were there. Standard output stays empty, for some read it. */
export const noOpinion: RuntimeReply = { status: 200, body: {}, exitCode: 0, stdout: "", stderr: "" };
/** A JSON answer, the same over HTTP and on standard output. */
export const toJsonReply = (body: object): RuntimeReply => ({
  status: 200,
  body,
  exitCode: 0,
  stdout: JSON.stringify(body),
  stderr: "",
});
/** A no that an open ticket may still turn, for as long as the hook may wait. */
export const toTicketReply = (body: object): RuntimeReply => ({ ...toJsonReply(body), isTicket: true });
/** The blocking exit code of command hooks, with the reason on standard error, and the same as JSON over HTTP. */
export const toBlockingReply = (body: object, reason: string): RuntimeReply => ({
  status: 200,
  body,
  exitCode: 2,
  stdout: "",
  stderr: `${reason}\n`,
});
