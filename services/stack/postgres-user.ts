import { createHash } from "node:crypto";
import { chown, lstat, mkdir, readFile, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Machine } from "./machine.ts";
import { run } from "./machine.ts";

/** Who runs PostgreSQL; empty for the present user. */
export interface RunAs {
  readonly uid?: number;
  readonly gid?: number;
}

/** uid and gid of a name in the text of `/etc/passwd`. */
export const userOfPasswd = (passwd: string, name: string): { uid: number; gid: number } | undefined => {
  for (const line of passwd.split("\n")) {
    const [user, , uid, gid] = line.split(":");
    if (user === name && uid !== undefined && gid !== undefined)
      return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
};

/** PostgreSQL refuses to run as root: as `postgres` where there is one, else as `nobody`. */
export const chooseUser = async (machine: Machine): Promise<RunAs> => {
  if (!machine.isRoot) return {};
  const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
  const user = userOfPasswd(passwd, "postgres") ?? userOfPasswd(passwd, "nobody");
  if (!user || user.uid === 0) {
    throw new Fault(
      "TOOL_MISSING",
      "PostgreSQL does not run as root and there is no user postgres or nobody: useradd postgres",
    );
  }
  return user;
};

/** Asks as that user: permissions, access lists and mounts have their own rules. */
export const canReach = async (user: RunAs, path: string, test: "-x" | "-w" = "-x"): Promise<boolean> => {
  if (user.uid === undefined) return true;
  const asked = await run("/bin/sh", ["-c", `test ${test} "$0"`, path], { ...user, cwd: "/" });
  return asked.exitCode === 0;
};

/** In the temporary folder anybody may have been before us: what is there must be a folder, and ours or the user's. */
const isTrusted = async (user: RunAs, folder: string): Promise<boolean> => {
  const entry = await lstat(folder);
  return entry.isDirectory() && (entry.uid === user.uid || entry.uid === process.getuid?.());
};

/** `<stack>/postgres`, or a folder of the system's temporary one when the user cannot reach the project. */
export const makePostgresDir = async (user: RunAs, stackDir: string): Promise<string> => {
  const make = async (folder: string): Promise<boolean> => {
    await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    if (!(await isTrusted(user, folder))) return false;
    if (user.uid !== undefined && user.gid !== undefined) await chown(folder, user.uid, user.gid);
    return canReach(user, folder, "-w");
  };
  const near = join(stackDir, "postgres");
  if (await make(near)) return near;
  await rmdir(near).catch(() => undefined);
  const digest = createHash("sha256").update(stackDir).digest("hex").slice(0, 16);
  const far = join(tmpdir(), `fabric-postgres-${digest}`);
  if (await make(far)) return far;
  throw new Fault(
    "STACK_FAILED",
    `user ${String(user.uid)} can write neither ${near} nor ${far}: remove what is there`,
  );
};
