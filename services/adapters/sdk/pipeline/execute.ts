import type { Json, JsonObject } from "../json.ts";
import { toFrozenJson } from "../json.ts";
import type { PreparedCall } from "./prepare.ts";
import type { Tool } from "./tool.ts";
import { UnknownEffect } from "./tool.ts";

/** What came of the body. */
export type Execution = { readonly attempts: number; readonly durationMs: number } & (
  | { readonly status: "succeeded"; readonly output: Json }
  | { readonly status: "failed"; readonly error: string }
  | { readonly status: "unknown"; readonly error: string }
);

export interface ExecuteOptions {
  /** Time of an attempt for tools that name none. */
  readonly timeoutMs: number;
  /** Told when the body of an attempt that was given up comes to an end after all. */
  readonly onLateEnd: (how: "succeeded" | "failed") => void;
}

type Attempt =
  | { readonly status: "succeeded"; readonly output: Json }
  | { readonly status: "failed" | "unknown"; readonly error: string };

const defaultAttempts = 2;

/**
 * The second and third stage: the body, within its time. A call whose outcome nobody knows is made again only by tools that
 * are declared to bear it; of all others it stays unknown.
 */
export async function execute(
  tool: Tool,
  prepared: PreparedCall,
  options: ExecuteOptions,
  signal: AbortSignal,
): Promise<Execution> {
  const startedMs = performance.now();
  const attemptsMax =
    tool.repeat === undefined || tool.repeat === "never" ? 1 : (tool.attempts ?? defaultAttempts);
  const { maxRuntimeSeconds } = prepared.decision.constraints;
  const ownMs = tool.timeoutMs ?? options.timeoutMs;
  const timeoutMs = maxRuntimeSeconds === undefined ? ownMs : Math.min(ownMs, maxRuntimeSeconds * 1000);
  let last: Attempt = { status: "unknown", error: "it was not tried" };
  let attempts = 0;
  while (attempts < attemptsMax) {
    attempts += 1;
    last = await attempt(tool, prepared, attempts, timeoutMs, options, signal);
    if (last.status === "succeeded" || signal.aborted) break;
  }
  return { ...last, attempts, durationMs: performance.now() - startedMs };
}

async function attempt(
  tool: Tool,
  { call, decision }: PreparedCall,
  number: number,
  timeoutMs: number,
  { onLateEnd }: ExecuteOptions,
  outer: AbortSignal,
): Promise<Attempt> {
  const controller = new AbortController();
  const { capability } = decision;
  const around = {
    callId: call.id,
    attempt: number,
    signal: controller.signal,
    constraints: decision.constraints,
    capability: capability === null ? null : { id: capability.id, token: capability.token },
  };
  return new Promise<Attempt>((resolve) => {
    let isOver = false;
    const end = (how: Attempt): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      outer.removeEventListener("abort", stop);
      resolve(how);
    };
    const giveUp = (why: string): void => {
      end({ status: "unknown", error: why });
      controller.abort(new Error(why));
    };
    const stop = (): void => giveUp("it was stopped while it ran");
    const timer = setTimeout(() => giveUp(`it did not end within ${String(timeoutMs)} ms`), timeoutMs);
    outer.addEventListener("abort", stop, { once: true });
    Promise.resolve()
      // A copy: what was judged stays as it is for the record.
      .then(() => tool.body(structuredClone<JsonObject>(call.input), around))
      .then((output) => toFrozenJson(output ?? null))
      .then(
        (output) => {
          if (isOver) onLateEnd("succeeded");
          end({ status: "succeeded", output });
        },
        (error: unknown) => {
          if (isOver) onLateEnd("failed");
          const text = error instanceof Error ? error.message : String(error);
          end({ status: error instanceof UnknownEffect ? "unknown" : "failed", error: text });
        },
      )
      .catch(() => undefined);
  });
}
