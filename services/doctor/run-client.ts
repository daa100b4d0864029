import { spawn } from "node:child_process";
import { mkdir, readdir } from "node:fs/promises";
import { delimiter, dirname, join, relative } from "node:path";
import type { ClientDrive, ToldResult } from "../platform/runtime-room.ts";
import type { ModelScript } from "./scripted-model.ts";
import { promptFor, startScriptedModel } from "./scripted-model.ts";

/** One run of a real client, without a person and without a network. */
export interface ClientRun {
  readonly drive: ClientDrive;
  readonly program: string;
  /** A folder that has to come first on PATH. */
  readonly firstPath?: string | undefined;
  /** An empty home, but for what was installed into it. */
  readonly home: string;
  readonly workspace: string;
  readonly script: ModelScript;
  readonly timeoutMs: number;
  /** Added to the client's environment, which is otherwise clean. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}
/** What came of it: what stands in the workspace, and what the model was told. */
export interface ClientOutcome {
  readonly exitCode: number | null;
  readonly isTimedOut: boolean;
  readonly durationMs: number;
  readonly told: readonly ToldResult[];
  /** When each request reached the model. */
  readonly requestedAtMs: readonly number[];
  readonly callsAsked: number;
  readonly filesCreated: readonly string[];
  readonly output: string;
}

const outputMaxChars = 400_000;
const killGraceMs = 3_000;

const listFiles = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));

/** The environment that a client gets: no key, no proxy, no setting of whoever runs this. */
export function cleanEnvironment(home: string, program: string, firstPath?: string): Record<string, string> {
  const folders = [
    firstPath,
    dirname(program),
    dirname(process.execPath),
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
  ];
  return {
    PATH: folders.filter((one) => one !== undefined).join(delimiter),
    HOME: home,
    TMPDIR: join(home, "tmp"),
    LANG: "C.UTF-8",
    TERM: "dumb",
  };
}

/** Runs the client through the script `main`, and ends whatever it leaves behind. */
export async function runClient(run: ClientRun): Promise<ClientOutcome> {
  const { drive, program, home, workspace } = run;
  const base = cleanEnvironment(home, program, run.firstPath);
  await Promise.all([workspace, join(home, "tmp")].map((folder) => mkdir(folder, { recursive: true })));
  const before = new Set(await listFiles(workspace));
  const model = await startScriptedModel(run.script);
  try {
    const prompt = promptFor("main");
    const start = await drive.prepare({
      program,
      home,
      workspace,
      modelUrl: model.url,
      apiKey: "made-up-key",
      prompt,
    });
    const startedMs = performance.now();
    const ended = await runGroup(start.argv, {
      cwd: workspace,
      env: { ...start.env, ...base, ...run.env },
      stdin: start.stdin,
      timeoutMs: run.timeoutMs,
      signal: run.signal,
    });
    const told = new Map(model.requests.flatMap((request) => request.told).map((one) => [one.id, one]));
    return {
      ...ended,
      durationMs: performance.now() - startedMs,
      told: [...told.values()],
      requestedAtMs: model.requests.map(({ atMs }) => atMs),
      callsAsked: new Set(model.requests.flatMap(({ calls }) => calls.map(({ id }) => id))).size,
      filesCreated: (await listFiles(workspace)).filter((file) => !before.has(file)).sort(),
    };
  } finally {
    model.close();
  }
}

interface GroupOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The client leads a process group of its own, so that nothing of it stays. */
function runGroup(
  argv: readonly string[],
  options: GroupOptions,
): Promise<Pick<ClientOutcome, "exitCode" | "isTimedOut" | "output">> {
  return new Promise((resolve) => {
    const [command = "", ...args] = argv;
    const child = spawn(command, args, { cwd: options.cwd, env: options.env, detached: true });
    let output = "";
    let isTimedOut = false;
    const kill = (signal: NodeJS.Signals): void => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, signal);
      } catch (error) {
        // Nothing is left of it.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    };
    const add = (chunk: Buffer): void => {
      if (output.length < outputMaxChars) output += chunk.toString("utf8");
    };
    const stop = (): void => {
      isTimedOut = true;
      kill("SIGTERM");
      setTimeout(() => kill("SIGKILL"), killGraceMs).unref();
    };
    const deadline = setTimeout(stop, options.timeoutMs);
    options.signal?.addEventListener("abort", stop);
    const end = (exitCode: number | null): void => {
      clearTimeout(deadline);
      options.signal?.removeEventListener("abort", stop);
      kill("SIGKILL");
      resolve({ exitCode, isTimedOut, output });
    };
    child.stdout.on("data", add);
    child.stderr.on("data", add);
    child.on("error", (error) => {
      output += String(error);
      end(null);
    });
    child.on("exit", (code) => setImmediate(end, code));
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.stdin);
  });
}
