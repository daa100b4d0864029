import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Ports } from "./ports.ts";
import { identify, isAlive } from "./process-record.ts";
import type { ProcessIdentity } from "./process-record.ts";
import { Fault } from "../../schemas/faults.ts";

/** What `stack.json` remembers between starts. */
export interface StackState {
  readonly format: 1;
  way: "docker" | "local";
  /** Somebody asked for a stack that stays: only `down` ends it. */
  detached: boolean;
  ports: Ports;
  /** Digest of the settings each part was last started with. */
  settings: Record<string, string>;
  versions: Record<string, string>;
  /** Where PostgreSQL keeps its data, when that is not below the stack's folder. */
  postgresDir?: string;
}

/** Made once per stack, readable by the owner only. */
export interface StackSecrets {
  readonly postgresPassword: string;
  readonly registryPassword: string;
  readonly kafkaClusterId: string;
}

/** A reader sees the old file or the new one, never a half. */
export const writeAtomically = async (path: string, text: string, mode = 0o644): Promise<void> => {
  const next = `${path}.${String(process.pid)}.${randomBytes(4).toString("hex")}`;
  const file = await open(next, "w", mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(next, path);
};

const loadJson = async <T>(path: string): Promise<T | undefined> => {
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
};

export const loadState = async (stackDir: string): Promise<StackState | undefined> => {
  const state = await loadJson<StackState>(join(stackDir, "stack.json"));
  return state?.format === 1 ? state : undefined;
};

export const saveState = (stackDir: string, state: StackState): Promise<void> =>
  writeAtomically(join(stackDir, "stack.json"), `${JSON.stringify(state, null, 2)}\n`);

export const loadSecrets = (stackDir: string): Promise<StackSecrets | undefined> =>
  loadJson<StackSecrets>(join(stackDir, "secrets.json"));

/** Kafka's own format tool takes an id that begins with a dash for an option; Kafka itself never draws one either. */
export const makeClusterId = (draw: () => string): string => {
  let id = draw();
  while (id.startsWith("-")) id = draw();
  return id;
};

export const loadOrMakeSecrets = async (stackDir: string): Promise<StackSecrets> => {
  const known = await loadSecrets(stackDir);
  if (known) return known;
  const made: StackSecrets = {
    postgresPassword: randomBytes(18).toString("hex"),
    registryPassword: randomBytes(18).toString("hex"),
    kafkaClusterId: makeClusterId(() => randomBytes(16).toString("base64url")),
  };
  await writeAtomically(join(stackDir, "secrets.json"), `${JSON.stringify(made, null, 2)}\n`, 0o600);
  return made;
};

const LOCK_POLL_MS = 50;
/** A wait that a person notices is worth a line. */
const NOTICE_MS = 1_000;
/** Removing a stale lock takes milliseconds; a remover that needs this long is dead. */
const GUARD_MAX_AGE_MS = 5_000;

/** "free", "stale" (its holder is dead, or nobody can be read in it), or who holds it. */
const judgeLock = async (lockFile: string): Promise<"free" | "stale" | ProcessIdentity> => {
  const text = await readFile(lockFile, "utf8").catch(() => undefined);
  if (text === undefined) return "free";
  try {
    const holder = JSON.parse(text) as ProcessIdentity;
    return (await isAlive(holder)) ? holder : "stale";
  } catch {
    return "stale";
  }
};

/** Takes away a lock whose holder died; a guard folder lets one process judge and remove at a time. */
const dropStaleLock = async (lockFile: string): Promise<void> => {
  const guard = `${lockFile}.taking`;
  try {
    await mkdir(guard);
  } catch {
    const ageMs = await stat(guard).then(
      (entry) => Date.now() - entry.mtimeMs,
      () => 0,
    );
    if (ageMs > GUARD_MAX_AGE_MS) await rm(guard, { recursive: true, force: true });
    else await wait(LOCK_POLL_MS);
    return;
  }
  try {
    if ((await judgeLock(lockFile)) === "stale") await rm(lockFile, { force: true });
  } finally {
    await rm(guard, { recursive: true, force: true });
  }
};

const tryLink = (draft: string, lockFile: string): Promise<boolean> =>
  link(draft, lockFile).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );

/** One process at a time per lock file; a lock whose holder is dead is no lock. `onWait` hears once whom it waits for. */
export const withLock = async <T>(
  lockFile: string,
  deadlineMs: number,
  work: () => Promise<T>,
  onWait?: (holderPid: number) => void,
): Promise<T> => {
  const draft = `${lockFile}.${String(process.pid)}.${randomBytes(4).toString("hex")}`;
  const startedAtMs = Date.now();
  let isNoticed = false;
  await writeFile(draft, JSON.stringify(await identify(process.pid)));
  try {
    // A hard link is made whole or not at all: nobody reads a lock without its holder.
    while (!(await tryLink(draft, lockFile))) {
      const found = await judgeLock(lockFile);
      if (found === "free") continue;
      if (found === "stale") {
        await dropStaleLock(lockFile);
        continue;
      }
      const waitedMs = Date.now() - startedAtMs;
      if (waitedMs > deadlineMs) {
        throw new Fault(
          "STACK_FAILED",
          `process ${String(found.pid)} holds ${lockFile}: wait for it, or end it`,
        );
      }
      if (waitedMs > NOTICE_MS && !isNoticed) {
        isNoticed = true;
        onWait?.(found.pid);
      }
      await wait(LOCK_POLL_MS);
    }
  } finally {
    await rm(draft, { force: true });
  }
  try {
    return await work();
  } finally {
    await rm(lockFile, { force: true });
  }
};
