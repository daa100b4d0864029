import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A process of this bench that takes its settings as one message and says "ready". */
export interface BenchProcess {
  readonly pid: number;
  /** Rejects when the process ends by itself. */
  readonly broken: Promise<never>;
  /** Sends a request and waits for the answer. */
  ask(request: string): Promise<unknown>;
  stop(): Promise<void>;
}

const stopDeadlineMs = 10_000;

/** Starts `<name>.js` of this folder as a process of its own. It ends when we do: its channel closes. */
export async function startProcess(
  name: string,
  settings: unknown,
  nodeFlags: readonly string[] = [],
): Promise<BenchProcess> {
  const path = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  const child = fork(path, { execArgv: [...nodeFlags], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const broken = rejectAtEnd(child, name);
  const ready = nextMessage(child);
  child.send({ settings });
  await Promise.race([ready, broken]);
  return {
    pid: child.pid ?? 0,
    broken,
    async ask(request) {
      const answer = nextMessage(child);
      child.send({ request });
      return Promise.race([answer, broken]);
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill("SIGKILL"), stopDeadlineMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

function nextMessage(child: ChildProcess): Promise<unknown> {
  return once(child, "message").then(([message]) => message as unknown);
}

function rejectAtEnd(child: ChildProcess, name: string): Promise<never> {
  const broken = new Promise<never>((_resolve, reject) => {
    child.on("exit", (code, signal) => {
      reject(new Error(`${name} ended with ${signal ?? String(code)}`));
    });
  });
  // Nobody may be waiting when it is stopped in good order.
  broken.catch(() => undefined);
  return broken;
}

/** What a process of this bench does with its settings. */
export interface ChildRole {
  /** Answers a request of the parent. */
  answer?(request: string): unknown;
  stop(): Promise<void>;
}

/** The other end: runs `start` with the settings, says "ready", and stops when the parent is gone. */
export function runAsChild<Settings>(start: (settings: Settings) => Promise<ChildRole>): void {
  let role: ChildRole | undefined;
  process.on("message", (message: { settings?: Settings; request?: string }) => {
    if (message.settings !== undefined) {
      start(message.settings).then(
        (started) => {
          role = started;
          process.send?.("ready");
        },
        (error: unknown) => {
          console.error(error);
          process.exit(1);
        },
      );
    } else if (message.request !== undefined) {
      Promise.resolve(role?.answer?.(message.request)).then(
        (answer) => process.send?.(answer ?? "done"),
        (error: unknown) => {
          console.error(error);
          process.exit(1);
        },
      );
    }
  });
  // Ctrl-C reaches the whole group; the parent decides when we end.
  process.on("SIGINT", () => undefined);
  process.on("disconnect", () => {
    const end = (): never => process.exit(0);
    if (role === undefined) end();
    else role.stop().then(end, end);
  });
}
