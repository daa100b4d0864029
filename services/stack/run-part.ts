import { createHash } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Fault } from "../../schemas/faults.ts";
import type { LocalPart, Log } from "./parts.ts";
import { pickPort } from "./ports.ts";
import { endRecorded, isAlive, launch, loadLive } from "./process-record.ts";
import type { ProcessIdentity } from "./process-record.ts";
import type { StackState } from "./state.ts";

const READY_POLL_MS = 50;
const MAX_STARTS = 4;
const LOG_TAIL_BYTES = 16_384;

export interface PartHost {
  readonly stackDir: string;
  readonly state: StackState;
  readonly log: Log;
  /** Living users besides the caller: a healthy server is not taken from them. */
  readonly isShared: boolean;
  readonly signal?: AbortSignal;
  save(): Promise<void>;
}

export const recordFileOf = (part: LocalPart): string => join(part.dir, "process");
export const logFileOf = (part: LocalPart): string => join(part.dir, `${part.name}.log`);

const tailOf = async (path: string): Promise<string> => {
  try {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      const length = Math.min(size, LOG_TAIL_BYTES);
      const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.toString("utf8").trim();
    } finally {
      await file.close();
    }
  } catch {
    return "";
  }
};

/** What a server prints when somebody else got its port between our look and its start. */
const PORT_TAKEN = /address already in use|could not bind|BindException|already bound|port.{0,20} in use/i;
/** Children of a killed PostgreSQL leave a moment after it. */
const STILL_LEAVING = /pre-existing shared memory block|lock file .* already exists/i;

/** The lines of a log that say why, of all its stack traces. */
export const reasonOf = (log: string): string => {
  const lines = log.split("\n").filter((line) => line.trim() !== "");
  const telling = lines.filter(
    (line) => /caused by|error|fatal|exception|panic/i.test(line) && !/^\s*at /.test(line),
  );
  return (telling.length > 0 ? telling : lines).slice(-3).join(" | ").trim().slice(0, 600);
};

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

const choosePorts = async (host: PartHost, part: LocalPart): Promise<void> => {
  for (const name of part.portNames) {
    const others = Object.entries(host.state.ports).flatMap(([other, port]) =>
      other === name ? [] : [port],
    );
    host.state.ports[name] = await pickPort(host.stackDir, name, host.state.ports[name], new Set(others));
  }
};

/** "ready", or "dead" when the process ended first. */
const waitUntilReady = async (
  host: PartHost,
  part: LocalPart,
  running: ProcessIdentity,
): Promise<"ready" | "dead"> => {
  const until = Date.now() + part.readyDeadlineMs;
  for (;;) {
    host.signal?.throwIfAborted();
    if (await part.probe(host.state.ports)) return (await isAlive(running)) ? "ready" : "dead";
    if (!(await isAlive(running))) return "dead";
    if (Date.now() > until) {
      await endRecorded(recordFileOf(part), part.stopSignal, 2_000);
      const seconds = String(part.readyDeadlineMs / 1000);
      throw new Fault(
        "STACK_FAILED",
        `${part.name} was not ready in ${seconds} s, see ${logFileOf(part)}: ${reasonOf(await tailOf(logFileOf(part)))}`,
      );
    }
    await wait(READY_POLL_MS);
  }
};

/** Starts the part and returns once it serves. */
export const startPart = async (host: PartHost, part: LocalPart): Promise<void> => {
  const startedAtMs = Date.now();
  // Events, schemas and logs are for their owner; Postgres' own folder is made for its user before.
  await mkdir(part.dir, { recursive: true, mode: 0o700 });
  await endRecorded(recordFileOf(part), part.stopSignal, part.stopDeadlineMs);
  let tail = "";
  for (let start = 1; start <= MAX_STARTS; start += 1) {
    await choosePorts(host, part);
    host.state.settings[part.name] = digest(part.settings(host.state.ports));
    await host.save();
    const what = await part.prepare(host.state.ports);
    host.signal?.throwIfAborted();
    host.log(`${part.name}: starting`);
    const running = await launch(what, recordFileOf(part), logFileOf(part));
    if (running && (await waitUntilReady(host, part, running)) === "ready") {
      host.log(
        `${part.name}: ready after ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s (pid ${String(running.pid)})`,
      );
      return;
    }
    tail = await tailOf(logFileOf(part));
    if (PORT_TAKEN.test(tail)) {
      host.log(`${part.name}: its port was taken meanwhile, choosing another`);
    } else if (STILL_LEAVING.test(tail)) {
      await wait(500);
    } else break;
  }
  throw new Fault(
    "STACK_FAILED",
    `${part.name} ended while starting, see ${logFileOf(part)}: ${reasonOf(tail)}`,
  );
};

export const pidOf = async (part: LocalPart): Promise<number | undefined> =>
  (await loadLive(recordFileOf(part)))?.pid;

/** "warm": runs as wanted and serves. "other": serves, with other settings. "cold": everything else. */
const judge = async (host: PartHost, part: LocalPart): Promise<"warm" | "other" | "cold"> => {
  if (!part.portNames.every((name) => host.state.ports[name] !== undefined)) return "cold";
  if ((await pidOf(part)) === undefined || !(await part.probe(host.state.ports))) return "cold";
  return host.state.settings[part.name] === digest(part.settings(host.state.ports)) ? "warm" : "other";
};

/** Uses a healthy process again; whatever else is left of an earlier start is ended first. True when it had to start. */
export const ensurePart = async (host: PartHost, part: LocalPart): Promise<boolean> => {
  const found = await judge(host, part);
  if (found === "other" && host.isShared) {
    host.log(`${part.name}: running with other settings, left as it is because others use it`);
    return false;
  }
  if (found === "warm") {
    host.log(`${part.name}: running`);
    return false;
  }
  await startPart(host, part);
  return true;
};

export const stopPart = async (host: PartHost, part: LocalPart): Promise<void> => {
  if ((await pidOf(part)) !== undefined) host.log(`${part.name}: stopping`);
  await endRecorded(recordFileOf(part), part.stopSignal, part.stopDeadlineMs);
};
