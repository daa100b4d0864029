import { spawn } from "node:child_process";
import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What this room needs to know of the machine; handed in, so that tests can invent one. */
export interface Machine {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** uid 0 may not run PostgreSQL. */
  readonly isRoot: boolean;
}

/** The machine this process runs on: the only place of the room that reads the process environment. */
export const thisMachine = (): Machine => ({
  env: process.env,
  home: homedir(),
  isRoot: process.getuid?.() === 0,
});

export const pathFolders = (machine: Machine): string[] =>
  (machine.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");

export const fileExists = async (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Names in a folder, sorted; empty when there is no such folder. */
export const namesIn = async (folder: string): Promise<string[]> =>
  readdir(folder).then(
    (names) => names.sort(),
    () => [],
  );

/** The first place on PATH that has the program. */
export const findProgram = async (machine: Machine, program: string): Promise<string | undefined> => {
  for (const folder of pathFolders(machine)) {
    const path = join(folder, program);
    if (await fileExists(path)) return path;
  }
  return undefined;
};

/** The folder that holds `deploy/`, from the sources as from `dist/`. */
export const findPackageDir = async (): Promise<string> => {
  let folder = fileURLToPath(new URL(".", import.meta.url));
  for (;;) {
    if (await fileExists(join(folder, "deploy", "local", "pom.xml"))) return folder;
    const parent = join(folder, "..");
    if (parent === folder) throw new Error("the package has lost its deploy/local/pom.xml: install it again");
    folder = parent;
  }
};

export interface RunResult {
  readonly exitCode: number | null;
  readonly output: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
  readonly input?: string;
  readonly timeoutMs?: number;
  readonly onLine?: (line: string) => void;
}

/** Runs a short-lived program to its end; stdout and stderr are one text. A program that cannot start has exit code null. */
export const run = (command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> =>
  new Promise((resolve) => {
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "pipe"],
      ...(options.env && { env: { ...options.env } }),
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      ...(options.uid !== undefined && { uid: options.uid }),
      ...(options.gid !== undefined && { gid: options.gid }),
      ...(options.timeoutMs !== undefined && { timeout: options.timeoutMs, killSignal: "SIGKILL" as const }),
    });
    let output = "";
    let rest = "";
    const take = (chunk: Buffer): void => {
      output += chunk.toString();
      if (!options.onLine) return;
      const lines = (rest + chunk.toString()).split(/[\r\n]+/);
      rest = lines.pop() ?? "";
      for (const line of lines) options.onLine(line);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    // A child that exits before it read its input is told by its exit code.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
    child.on("error", (error) => {
      resolve({ exitCode: null, output: error.message });
    });
    child.on("close", (exitCode) => {
      resolve({ exitCode, output });
    });
  });
