import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { ProxyOrder } from "./app-server.ts";
import type { Pins } from "./client-methods.ts";
import { createMediator, toKnownOrder } from "./mediator.ts";
import type { WireObject } from "./wire-message.ts";

export interface ProxyOptions {
  /** The server's command line, such as `codex app-server`. */
  readonly argv: readonly [string, ...string[]];
  readonly workingDirectory?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly gateUrl: string;
  readonly token: () => string;
  readonly pins: Pins;
  readonly client: { readonly input: Readable; readonly output: Writable };
  /** Deadline of a question at the gate; default 5 s. The turn waits anyway. */
  readonly timeoutMs?: number;
  /** How often an open ticket is looked at; default 1 s. */
  readonly pollMs?: number;
}
export interface RunningProxy {
  /** Resolves with the server's exit code when it has ended and everything was recorded. */
  readonly ended: Promise<number>;
  stop(): void;
}

const defaultTimeoutMs = 5_000;
const defaultPollMs = 1_000;
/** Events that wait for the gate; what does not fit is lost. */
const waitingMax = 2_000;
const retryFirstMs = 100;
const retryMaxMs = 5_000;
/** So long a question lets earlier events go first. */
const toldFirstMs = 1_000;
/** So long the proxy tries to tell what is left when the server has ended. */
const lastWordsMs = 3_000;

/** Runs the App Server with the gate between it and its client, over standard input and output. */
export function startProxy(options: ProxyOptions): RunningProxy {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const [program, ...rest] = options.argv;
  const server = spawn(program, rest, {
    stdio: ["pipe", "pipe", "inherit"],
    ...(options.workingDirectory === undefined ? {} : { cwd: options.workingDirectory }),
    ...(options.environment === undefined ? {} : { env: { ...options.environment } }),
  });
  const post = async (payload: WireObject): Promise<unknown> => {
    const response = await fetch(`${options.gateUrl}/v1/hooks/codex-app-server`, {
      method: "POST",
      headers: { authorization: `Bearer ${options.token()}`, "content-type": "application/json" },
      body: JSON.stringify(payload),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.status >= 500) throw new Error(`the gate answered ${String(response.status)}`);
    return response.json();
  };

  // Events go one after another, in their order, and again while the gate does not take them. A question waits a moment for
  // what was told before it.
  let telling: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let giveUpAtMs = Number.POSITIVE_INFINITY;
  const observe = (payload: WireObject): void => {
    if (waiting >= waitingMax) return;
    waiting += 1;
    telling = telling
      .then(() => tell(payload))
      .finally(() => {
        waiting -= 1;
      });
  };
  const tell = async (payload: WireObject): Promise<void> => {
    for (let pauseMs = retryFirstMs; ; pauseMs = Math.min(pauseMs * 2, retryMaxMs)) {
      try {
        await post(payload);
        return;
      } catch {
        if (Date.now() >= giveUpAtMs) return;
        await wait(pauseMs);
      }
    }
  };
  const ask = async (payload: WireObject): Promise<ProxyOrder> => {
    const controller = new AbortController();
    const moment = wait(toldFirstMs, undefined, { signal: controller.signal }).catch(() => undefined);
    await Promise.race([telling, moment]);
    controller.abort();
    return toKnownOrder(await post(payload));
  };

  const mediator = createMediator({
    toClient: (line) => options.client.output.write(`${line}\n`),
    toServer: (line) => server.stdin.write(`${line}\n`),
    ask,
    observe,
    pins: options.pins,
    waitMs: (ms) => wait(ms),
    nowMs: Date.now,
    pollMs: options.pollMs ?? defaultPollMs,
  });
  // A server that is gone reads nothing more; its end is told below.
  server.stdin.on("error", () => undefined);
  createInterface({ input: options.client.input })
    .on("line", (line) => mediator.fromClient(line))
    // The client is gone: the server denies what is pending and ends.
    .on("close", () => server.stdin.end());
  const lines = createInterface({ input: server.stdout }).on("line", (line) => mediator.fromServer(line));
  const closed = new Promise<void>((resolve) => lines.once("close", resolve));

  const ended = new Promise<number>((resolve, reject) => {
    server.once("error", reject);
    server.once("close", (code) => {
      void closed
        .then(() => mediator.settled())
        .then(() => {
          giveUpAtMs = Date.now() + lastWordsMs;
          return telling;
        })
        .then(() => resolve(code ?? 1));
    });
  });
  return { ended, stop: () => void server.kill("SIGTERM") };
}
