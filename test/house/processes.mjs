// Finds and ends the processes of one test run by the mark in their environment (Linux; elsewhere it finds none).
// As a program: `node test/house/processes.mjs MARK` ends what is left of that run.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const TERM_MS = 5_000;

/** Processes other than this one and its ancestors that carry the mark. */
export function leftBehind(mark) {
  const own = ancestors(process.pid);
  return pids()
    .filter((pid) => !own.has(pid) && read(pid, "environ").split("\0").includes(`FABRIC_RUN_MARK=${mark}`))
    .filter((pid) => !/^State:\s+Z/m.test(read(pid, "status")))
    .map((pid) => ({ pid, command: read(pid, "cmdline").replaceAll("\0", " ").trim().slice(0, 140) }));
}

/** Asks the processes of a run to end, and ends those that do not. */
export async function endAll(mark) {
  for (const { pid } of leftBehind(mark)) send(pid, "SIGTERM");
  const deadlineMs = Date.now() + TERM_MS;
  while (leftBehind(mark).length > 0 && Date.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  for (const { pid } of leftBehind(mark)) send(pid, "SIGKILL");
}

function pids() {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

function ancestors(pid) {
  const found = new Set();
  for (let at = pid; at > 0 && !found.has(at);) {
    found.add(at);
    at = Number(/^PPid:\s+(\d+)/m.exec(read(at, "status"))?.[1] ?? 0);
  }
  return found;
}

/** A file of /proc; empty when the process is gone or belongs to somebody else. */
function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

function send(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself in between.
  }
}

const [, program, mark] = process.argv;
if (program === fileURLToPath(import.meta.url) && mark !== undefined) await endAll(mark);
