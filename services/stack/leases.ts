import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { namesIn } from "./machine.ts";
import { identify, isAlive } from "./process-record.ts";
import type { ProcessIdentity } from "./process-record.ts";

/** Files of the processes that use a stack: the last one to go ends it. All calls are made under the stack's lock. */
const usersDir = (stackDir: string): string => join(stackDir, "users");

/** Registers this process; the answer is what `dropLease` takes. */
export const takeLease = async (stackDir: string): Promise<string> => {
  await mkdir(usersDir(stackDir), { recursive: true });
  const file = join(usersDir(stackDir), `${String(process.pid)}-${randomBytes(4).toString("hex")}.json`);
  await writeFile(file, JSON.stringify(await identify(process.pid)));
  return file;
};

export const dropLease = (file: string): Promise<void> => rm(file, { force: true });

/** How many users are alive; the files of dead ones are removed. */
export const countLeases = async (stackDir: string): Promise<number> => {
  let alive = 0;
  for (const name of await namesIn(usersDir(stackDir))) {
    const file = join(usersDir(stackDir), name);
    try {
      if (await isAlive(JSON.parse(await readFile(file, "utf8")) as ProcessIdentity)) alive += 1;
      else await rm(file, { force: true });
    } catch {
      await rm(file, { force: true });
    }
  }
  return alive;
};
