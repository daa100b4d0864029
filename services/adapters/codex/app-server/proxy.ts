import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { Pins } from "./client-methods.ts";
import type { GateLink, GateLinkOptions } from "./gate-link.ts";
import { createGateLink } from "./gate-link.ts";
import type { Mediator } from "./mediator.ts";
import { createMediator } from "./mediator.ts";
import type { ServerWire } from "./server-wire.ts";
import type { ThreadBook } from "./thread-book.ts";
import { createThreadBook } from "./thread-book.ts";

/** What holds for every transport. */
export interface ProxyRules extends GateLinkOptions {
  readonly pins: Pins;
  /** How often an open ticket is looked at; default 1 s. */
  readonly pollMs?: number;
}
export interface ProxyOptions extends ProxyRules {
  readonly server: ServerWire;
  readonly client: { readonly input: Readable; readonly output: Writable };
}
export interface RunningProxy {
  /** Resolves with the server's exit code when it has ended and everything was recorded. */
  readonly ended: Promise<number>;
  stop(): void;
}

const defaultPollMs = 1_000;

/** Puts the gate between one client and one server, whatever carries their messages. */
export function joinClient(
  server: ServerWire,
  toClient: (line: string) => void,
  gate: GateLink,
  { pins, pollMs = defaultPollMs }: ProxyRules,
  book: ThreadBook,
): Mediator {
  const mediator = createMediator({
    toClient,
    toServer: (line) => server.send(line),
    ask: (payload) => gate.ask(payload),
    observe: (payload) => gate.observe(payload),
    pins,
    book,
    waitMs: (ms) => wait(ms),
    nowMs: Date.now,
    pollMs,
  });
  server.onLine((line) => mediator.fromServer(line));
  return mediator;
}

/** Puts the gate between the App Server and a client on standard input and output. */
export function startProxy(options: ProxyOptions): RunningProxy {
  const { server } = options;
  const gate = createGateLink(options);
  const toClient = (line: string): void => void options.client.output.write(`${line}\n`);
  const mediator = joinClient(server, toClient, gate, options, createThreadBook());
  createInterface({ input: options.client.input })
    .on("line", (line) => mediator.fromClient(line))
    .on("close", () => server.finish());
  const ended = server.ended.then(async (code) => {
    mediator.close();
    await mediator.settled();
    await gate.lastWords();
    return code;
  });
  return { ended, stop: () => server.stop() };
}
