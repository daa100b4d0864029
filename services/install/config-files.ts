import { chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { Fault } from "../../schemas/faults.ts";

/** One file as it is and as it will be; null: there is none. */
export interface FileChange {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
  /** For what is written; undefined: as it was. */
  readonly mode: number | undefined;
}

const newFileMode = 0o644;
const newFolderMode = 0o700;
const permissionBits = 0o777;

/** A file's text; null where there is none. Throws CONFIG_INVALID for one that cannot be read. */
export async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new Fault("CONFIG_INVALID", `\`${path}\` cannot be read`, { cause: error });
  }
}

/** Writes or removes each file, whole or not at all; a link is followed, and stays one. */
export async function applyChanges(changes: readonly FileChange[]): Promise<void> {
  for (const { path, before, after, mode } of changes) {
    if (after === null) {
      await rm(path, { force: true });
      continue;
    }
    const real = await realpath(path).catch(() => path);
    const now = await stat(real).then(
      (found) => found.mode & permissionBits,
      () => newFileMode,
    );
    if (before === after) {
      if (mode !== undefined && mode !== now) await chmod(real, mode);
      continue;
    }
    await mkdir(dirname(real), { recursive: true, mode: newFolderMode });
    const next = `${real}.fabric-${String(process.pid)}`;
    await writeFile(next, after, { mode: mode ?? now });
    await chmod(next, mode ?? now);
    await rename(next, real);
  }
}
