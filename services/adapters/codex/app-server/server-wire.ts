import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** The App Server as a proxy holds it: messages as texts, whatever carries them. */
export interface ServerWire {
  send(line: string): void;
  /** Called once, before anything was sent. */
  onLine(take: (line: string) => void): void;
  /** Resolves with an exit code when it has ended and every message was taken. */
  readonly ended: Promise<number>;
  /** The client is gone: the server denies what is pending. */
  finish(): void;
  stop(): void;
}

export interface ServerProgram {
  /** The server's command line, such as `codex app-server`. */
  readonly argv: readonly [string, ...string[]];
  readonly workingDirectory?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts the server, and speaks to it over its standard input and output. */
export function spawnServer({ argv, workingDirectory, environment }: ServerProgram): ServerWire {
  const [program, ...rest] = argv;
  const server = spawn(program, rest, {
    stdio: ["pipe", "pipe", "inherit"],
    ...(workingDirectory === undefined ? {} : { cwd: workingDirectory }),
    ...(environment === undefined ? {} : { env: { ...environment } }),
  });
  // A server that is gone reads nothing more; its end is told below.
  server.stdin.on("error", () => undefined);
  const lines = createInterface({ input: server.stdout });
  const closed = new Promise<void>((resolve) => lines.once("close", resolve));
  const ended = new Promise<number>((resolve, reject) => {
    server.once("error", reject);
    server.once("close", (code) => void closed.then(() => resolve(code ?? 1)));
  });
  return {
    send: (line) => server.stdin.write(`${line}\n`),
    onLine: (take) => void lines.on("line", take),
    ended,
    finish: () => server.stdin.end(),
    stop: () => void server.kill("SIGTERM"),
  };
}
