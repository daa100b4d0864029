import { execFile, spawn } from "node:child_process";
import { open, readFile, rename, rm } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";

/** A process told apart from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in the words of the system; equal only for the same process. */
  readonly startedAt: string;
}

/**
 * Field 22 of `/proc/PID/stat`, with the boot it counts from; undefined for a zombie. The name in field 2 may hold
 * spaces and brackets. A killed JVM whose first thread is gone reads as a zombie while its other threads still hold
 * ports and file locks: it lives until field 20, the number of threads, says that it is alone.
 */
export const startOfStat = (stat: string, bootId: string): string | undefined => {
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .trim()
    .split(" ");
  const [state] = fields;
  const threads = Number(fields[17]);
  const ticks = fields[19];
  if (state === undefined || ticks === undefined) return undefined;
  if ((state === "Z" || state === "X") && !(threads > 1)) return undefined;
  return `${ticks}@${bootId.trim()}`;
};

/** Reads what the launcher wrote: pid, then `/proc/PID/stat` or `ps` start time, then the boot id where there is one. */
export const parseRecord = (text: string): ProcessIdentity | undefined => {
  const [first = "", second = "", third = ""] = text.split("\n");
  const pid = Number(first);
  if (!Number.isInteger(pid) || pid <= 1 || second.trim() === "") return undefined;
  const startedAt = second.startsWith(`${first} (`) ? startOfStat(second, third) : second.trim();
  return startedAt === undefined ? undefined : { pid, startedAt };
};

const runFile = promisify(execFile);

/** Identity of a live process; undefined when there is none, or only its zombie. */
export const identify = async (pid: number): Promise<ProcessIdentity | undefined> => {
  if (process.platform === "linux") {
    try {
      const stat = await readFile(`/proc/${String(pid)}/stat`, "utf8");
      const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
      const startedAt = startOfStat(stat, bootId);
      return startedAt === undefined ? undefined : { pid, startedAt };
    } catch {
      return undefined;
    }
  }
  const started = await runFile("ps", ["-o", "lstart=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  const startedAt = started.stdout.trim();
  return startedAt === "" ? undefined : { pid, startedAt };
};

export const isAlive = async (recorded: ProcessIdentity): Promise<boolean> =>
  (await identify(recorded.pid))?.startedAt === recorded.startedAt;

/** The recorded process if it still lives. INVARIANT: a reused pid is never taken for ours (process-record.test.ts). */
export const loadLive = async (recordFile: string): Promise<ProcessIdentity | undefined> => {
  const text = await readFile(recordFile, "utf8").catch(() => "");
  const recorded = parseRecord(text);
  return recorded && (await isAlive(recorded)) ? recorded : undefined;
};

/** The process writes its own record before it becomes the program, so that no instant exists in which it runs unrecorded. */
const LAUNCHER = `record=$1; shift
{ echo "$$"; cat "/proc/$$/stat" 2>/dev/null || ps -o lstart= -p "$$"; cat /proc/sys/kernel/random/boot_id 2>/dev/null; } > "$record.new"
mv "$record.new" "$record" && exec "$@"`;

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** Starts a process that outlives this one, its output in `logFile` (the run before is kept as `.1`). */
export const launch = async (
  what: Launch,
  recordFile: string,
  logFile: string,
): Promise<ProcessIdentity | undefined> => {
  await rm(recordFile, { force: true });
  await rename(logFile, `${logFile}.1`).catch(() => undefined);
  const log = await open(logFile, "a", 0o600);
  try {
    const child = spawn("/bin/sh", ["-c", LAUNCHER, "fabric-stack", recordFile, what.command, ...what.args], {
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
      env: { ...what.env },
      cwd: what.cwd,
      ...(what.uid !== undefined && { uid: what.uid }),
      ...(what.gid !== undefined && { gid: what.gid }),
    });
    const failed = new Promise<never>((_, reject) => child.once("error", reject));
    failed.catch(() => undefined);
    child.unref();
    const { pid } = child;
    if (pid === undefined) return await failed;
    const identity = await identify(pid);
    for (let waitedMs = 0; identity && waitedMs < 3_000; waitedMs += 5) {
      const recorded = parseRecord(await readFile(recordFile, "utf8").catch(() => ""));
      if (recorded || !(await isAlive(identity))) break;
      await wait(5);
    }
    return identity;
  } finally {
    await log.close();
  }
};

const signalIfOurs = async (recorded: ProcessIdentity, signal: NodeJS.Signals): Promise<void> => {
  if (!(await isAlive(recorded))) return;
  try {
    process.kill(recorded.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
};

/** True once the process is gone, false at the deadline. */
export const waitForEnd = async (recorded: ProcessIdentity, deadlineMs: number): Promise<boolean> => {
  const until = Date.now() + deadlineMs;
  while (await isAlive(recorded)) {
    if (Date.now() > until) return false;
    await wait(20);
  }
  return true;
};

/** Sends one signal to the recorded process, if it is still that process. */
export const signalRecorded = async (
  recordFile: string,
  signal: NodeJS.Signals,
): Promise<ProcessIdentity | undefined> => {
  const recorded = await loadLive(recordFile);
  if (recorded) await signalIfOurs(recorded, signal);
  return recorded;
};

/** Asks with each signal in turn and goes to the next at its deadline; SIGKILL comes last. */
export const endRecorded = async (
  recordFile: string,
  polite: NodeJS.Signals,
  deadlineMs: number,
): Promise<void> => {
  const recorded = await loadLive(recordFile);
  if (recorded) {
    await signalIfOurs(recorded, polite);
    // A process that was stopped (SIGSTOP) hears nothing before this.
    await signalIfOurs(recorded, "SIGCONT");
    if (!(await waitForEnd(recorded, deadlineMs))) {
      await signalIfOurs(recorded, "SIGKILL");
      await waitForEnd(recorded, 10_000);
    }
  }
  await rm(recordFile, { force: true });
};
