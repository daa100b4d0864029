import { AsyncLocalStorage } from "node:async_hooks";
import { toFrozenJson } from "../json.ts";
import type { HookEvents, HookPoint, HookReplies, PolicyPoint } from "./hook-points.ts";
import { hookPoints, isPolicyPoint, voices } from "./hook-points.ts";
import type { Match } from "./matchers.ts";
import { matches } from "./matchers.ts";
import type { Reply } from "./read-reply.ts";
import { Garbage, readReply } from "./read-reply.ts";
import { HandlerTimeout, withinTime } from "./run-handler.ts";

/** What a handler gets beside the event. */
export interface HandlerSurroundings {
  /** Aborted when the handler's time is up. */
  readonly signal: AbortSignal;
}
type Awaitable<T> = T | PromiseLike<T>;
/** At a point where handlers have a voice they may reply; elsewhere they observe. */
export type HookHandler<P extends HookPoint> = (
  event: HookEvents[P],
  around: HandlerSurroundings,
) => Awaitable<P extends PolicyPoint ? HookReplies[P] | null | undefined | void : void>;
export type HookObserver<P extends HookPoint> = (
  event: HookEvents[P],
  around: HandlerSurroundings,
) => unknown;

export interface HookOptions {
  /** Names the handler in refusals and records; default: the function's name. */
  readonly name?: string;
  /** Which tool calls it is for. */
  readonly match?: Match;
  /** Default: the registry's. */
  readonly timeoutMs?: number;
}

export type HandlerOutcome =
  | "silent"
  | "spoke"
  | "failed"
  | "timed_out"
  | "garbage"
  /** The event came of the handler's own doing. */
  | "own_output";
/** What one handler did at one event. */
export interface HandlerRecord {
  readonly point: HookPoint;
  readonly handler: string;
  readonly role: "policy" | "observer";
  readonly outcome: HandlerOutcome;
  readonly said: readonly string[];
  readonly durationMs: number;
  readonly error?: unknown;
}

export interface HookRegistryOptions {
  /** Time of a handler that has none of its own; default 5 s. */
  readonly timeoutMs?: number;
  /** Told of every handler that ran. Must not throw. */
  readonly onHandled?: (record: HandlerRecord) => void;
}

/** Why an event was refused, and by whom. */
export interface Denial {
  readonly handler: string;
  readonly reasonCode:
    "HOOK_DENIED" | "HANDLER_FAILED" | "HANDLER_TIMEOUT" | "HANDLER_GARBAGE" | "HANDLER_REENTERED";
  readonly message: string;
}

/** What the handlers of a point made of an event. */
export interface HookOutcome<P extends HookPoint> {
  /** As rewritten. */
  readonly event: HookEvents[P];
  readonly denied: Denial | null;
  /** Handlers that want a person's word. */
  readonly asks: readonly { readonly handler: string; readonly reason: string }[];
  readonly context: readonly string[];
  /** Set at Stop. */
  readonly goOn: readonly string[];
  readonly rewrittenBy: readonly string[];
  readonly records: readonly HandlerRecord[];
}

export interface HookRegistry {
  /** Registers a handler and returns its uninstall. Handlers run one after another, in the order of registration. */
  hook<P extends HookPoint>(point: P, handler: HookHandler<P>, options?: HookOptions): () => void;
  /** Registers one that has no say, and whose failure changes nothing. */
  observe<P extends HookPoint>(point: P, handler: HookObserver<P>, options?: HookOptions): () => void;
  /** Runs the handlers of a point. Never throws for what a handler does. */
  emit<P extends HookPoint>(point: P, event: HookEvents[P]): Promise<HookOutcome<P>>;
  /** Handlers that are installed, in order. */
  handlers(): readonly {
    readonly point: HookPoint;
    readonly name: string;
    readonly role: "policy" | "observer";
  }[];
  /** `model`, or `hook:<name>` inside a handler. */
  origin(): string;
}

interface Installed {
  readonly point: HookPoint;
  readonly name: string;
  readonly role: "policy" | "observer";
  readonly match: Match | undefined;
  readonly timeoutMs: number;
  readonly call: (event: never, around: HandlerSurroundings) => unknown;
  isInstalled: boolean;
}

/** Enough for a check over the network, short enough for a person who waits. */
const defaultTimeoutMs = 5_000;

/**
 * Makes a registry of hooks. A denial is final: no later handler is asked, and none can loosen it.
 * INVARIANT: test/property/sdk-hooks.test.ts "one no is a no".
 */
export function createHookRegistry(options: HookRegistryOptions = {}): HookRegistry {
  const installed: Installed[] = [];
  /** The handlers that the running code came from, outermost first. */
  const callers = new AsyncLocalStorage<readonly Installed[]>();

  function install(
    point: HookPoint,
    call: Installed["call"],
    role: Installed["role"],
    given: HookOptions = {},
  ): () => void {
    if (!(hookPoints as readonly string[]).includes(point))
      throw new RangeError(`there is no hook point ${point}`);
    const timeoutMs = given.timeoutMs ?? options.timeoutMs ?? defaultTimeoutMs;
    if (!(timeoutMs > 0 && timeoutMs <= 2 ** 31 - 1)) throw new RangeError("timeoutMs is a positive number");
    const name = given.name ?? (call.name === "" ? `${point}#${String(installed.length + 1)}` : call.name);
    const one: Installed = { point, name, role, match: given.match, timeoutMs, call, isInstalled: true };
    installed.push(one);
    return () => {
      one.isInstalled = false;
      const at = installed.indexOf(one);
      if (at !== -1) installed.splice(at, 1);
    };
  }

  return {
    hook: (point, handler, given) =>
      install(point, handler, isPolicyPoint(point) ? "policy" : "observer", given),
    observe: (point, handler, given) => install(point, handler, "observer", given),
    emit,
    handlers: () => installed.map(({ point, name, role }) => ({ point, name, role })),
    origin() {
      const caller = callers.getStore()?.at(-1);
      return caller === undefined ? "model" : `hook:${caller.name}`;
    },
  };

  async function emit<P extends HookPoint>(point: P, given: HookEvents[P]): Promise<HookOutcome<P>> {
    // Frozen, so that a handler that changes it in place fails, and does not believe that it changed something.
    let event = toFrozenJson(given) as unknown as HookEvents[P];
    let denied: Denial | null = null;
    const asks: { handler: string; reason: string }[] = [];
    const context: string[] = [];
    const goOn: string[] = [];
    const rewrittenBy: string[] = [];
    const records: HandlerRecord[] = [];
    // Those that are installed now; one that goes meanwhile is not called any more.
    for (const one of installed.filter((other) => other.point === point)) {
      if (!one.isInstalled || !isFor(one, event)) continue;
      if (one.role === "policy" && denied !== null) continue;
      const { reply, refusal, record } = await run(one, event);
      records.push(record);
      options.onHandled?.(record);
      if (refusal !== null) denied = refusal;
      if (reply === null) continue;
      const no = reply.deny ?? reply.block;
      if (no !== undefined) {
        denied = { handler: one.name, reasonCode: "HOOK_DENIED", message: no };
        continue;
      }
      if (reply.ask !== undefined) asks.push({ handler: one.name, reason: reply.ask });
      if (reply.context !== undefined) context.push(reply.context);
      if (reply.goOn !== undefined) goOn.push(reply.goOn);
      const changed = toChanged(point, event, reply);
      if (changed === null) continue;
      event = changed;
      rewrittenBy.push(one.name);
    }
    return { event, denied, asks, context, goOn, rewrittenBy, records };
  }

  async function run(
    one: Installed,
    event: HookEvents[HookPoint],
  ): Promise<{ reply: Reply | null; refusal: Denial | null; record: HandlerRecord }> {
    const startedMs = performance.now();
    const around = callers.getStore() ?? [];
    const toRecord = (
      outcome: HandlerOutcome,
      said: readonly string[] = [],
      error?: unknown,
    ): HandlerRecord => ({
      point: one.point,
      handler: one.name,
      role: one.role,
      outcome,
      said,
      durationMs: performance.now() - startedMs,
      ...(error === undefined ? {} : { error }),
    });
    if (around.includes(one)) {
      // It made this call itself. A formatter is not set off by what it formats; a check does not pass its own calls.
      const refusal = toRefusal(
        one,
        "HANDLER_REENTERED",
        "asked for a tool that it would have to check itself",
      );
      return { reply: null, refusal, record: toRecord("own_output") };
    }
    try {
      const returned = await callers.run([...around, one], () =>
        withinTime(one.timeoutMs, (signal) => one.call(event as never, { signal })),
      );
      const reply = one.role === "policy" ? readReply(one.point as PolicyPoint, returned) : null;
      const said = reply === null ? [] : Object.keys(reply);
      return { reply, refusal: null, record: toRecord(reply === null ? "silent" : "spoke", said) };
    } catch (error) {
      if (error instanceof HandlerTimeout) {
        const refusal = toRefusal(
          one,
          "HANDLER_TIMEOUT",
          `did not answer within ${String(one.timeoutMs)} ms`,
        );
        return { reply: null, refusal, record: toRecord("timed_out", [], error) };
      }
      if (error instanceof Garbage) {
        const refusal = toRefusal(one, "HANDLER_GARBAGE", "gave no answer that is one");
        return { reply: null, refusal, record: toRecord("garbage", [], error) };
      }
      // The error's text stays here: it may hold what the model must not read.
      return {
        reply: null,
        refusal: toRefusal(one, "HANDLER_FAILED", "failed"),
        record: toRecord("failed", [], error),
      };
    }
  }
}

/** A policy handler that fails says no where there is something to refuse; an observer never does. */
function toRefusal(one: Installed, reasonCode: Denial["reasonCode"], what: string): Denial | null {
  if (one.role !== "policy" || voices[one.point as PolicyPoint].onFailure !== "deny") return null;
  if (reasonCode === "HANDLER_REENTERED" && one.point !== "PreToolUse") return null;
  return { handler: one.name, reasonCode, message: `the hook "${one.name}" ${what}` };
}

function isFor(one: Installed, event: HookEvents[HookPoint]): boolean {
  if (one.match === undefined || !("call" in event)) return true;
  return matches(one.match, event.call.tool, event.call.input);
}

/** The event as a reply changes it; null: it does not. */
function toChanged<P extends HookPoint>(point: P, event: HookEvents[P], reply: Reply): HookEvents[P] | null {
  const change = toChange(point, event, reply);
  return change === null ? null : (toFrozenJson({ ...event, ...change }) as unknown as HookEvents[P]);
}

function toChange(
  point: HookPoint,
  event: HookEvents[HookPoint],
  { rewrite, replace }: Reply,
): object | null {
  switch (point) {
    case "PostToolUse":
      return replace === undefined ? null : { output: replace };
    case "UserPromptSubmit":
      return rewrite === undefined ? null : { prompt: rewrite };
    case "PreToolUse":
      return rewrite === undefined
        ? null
        : { call: { ...(event as HookEvents["PreToolUse"]).call, input: rewrite } };
    default:
      return null;
  }
}
