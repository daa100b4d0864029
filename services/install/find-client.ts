import { spawn } from "node:child_process";
import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import { toVersion } from "../platform/client-version.ts";
import type { RuntimeRoom } from "../platform/runtime-room.ts";

/** A client that is installed on this machine. */
export interface FoundClient {
  readonly program: string;
  readonly version: string;
  /** Of a library: the folder that its programs import from. */
  readonly packagesDir?: string;
}

const versionTimeoutMs = 20_000;

/** The first file of this name in the folders of a PATH that may be run; null where there is none. */
export async function findOnPath(name: string, path: string): Promise<string | null> {
  for (const folder of path.split(delimiter)) {
    if (folder === "") continue;
    const file = join(folder, name);
    const runs = await access(file, constants.X_OK)
      .then(() => stat(file))
      .then(
        (found) => found.isFile(),
        () => false,
      );
    if (runs) return file;
  }
  return null;
}

/** Finds the client and asks it for its version. Throws TOOL_MISSING with what to do. */
export async function findClient(
  room: RuntimeRoom,
  environment: Readonly<Record<string, string | undefined>>,
  given: string | undefined,
): Promise<FoundClient> {
  const { program: name } = room.setup;
  const program = given ?? (await findOnPath(name, environment["PATH"] ?? ""));
  if (program === null) {
    throw new Fault("TOOL_MISSING", `\`${name}\` is not on PATH; install it, or name it with --program`);
  }
  const library = room.setup.libraryArguments;
  const printed = await readVersion(program, library ?? ["--version"], environment);
  const version = toVersion(printed);
  if (version === null) {
    const what =
      library === undefined
        ? `\`${program} --version\` names no version`
        : `\`${program}\` has no ${room.adapter.runtime} to import`;
    throw new Fault("TOOL_MISSING", `${what}; give another --program`);
  }
  if (library === undefined) return { program, version };
  const [, packagesDir = ""] = printed.trim().split("\n");
  if (!packagesDir.startsWith("/"))
    throw new Fault("TOOL_MISSING", `\`${program}\` names no folder of packages; give another --program`);
  return { program, version, packagesDir };
}

function readVersion(
  program: string,
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, argv, {
      env: { ...environment },
      stdio: ["ignore", "pipe", "ignore"],
      timeout: versionTimeoutMs,
    });
    let printed = "";
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString("utf8")));
    child.on("error", (cause) => {
      reject(new Fault("TOOL_MISSING", `\`${program}\` cannot be run`, { cause }));
    });
    child.on("close", () => resolve(printed));
  });
}
