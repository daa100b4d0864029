import { mkdir, readFile, readdir, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import { endRecorded, launch, loadLive } from "../stack/process-record.ts";
import { freePort } from "../stack/ports.ts";
import { thisMachine } from "../stack/machine.ts";
import { writeAtomically } from "../stack/state.ts";

import type { LocalFiles } from "./place.ts";
import { gateHeapFlags } from "./gate-heap.ts";

/** A service process of a local stack, as its record on disk tells. */
export interface ServiceProcess {
  readonly name: string;
  readonly roles: readonly string[];
  /** Port of its health and metrics. */
  readonly port: number;
  readonly pid: number;
  /** When its record was written: UTC milliseconds. */
  readonly startedMs: number;
}

const describedSchema = z.object({ name: z.string(), roles: z.array(z.string()), port: z.number() });

/** Longest time from start to ready: JVMs of the same machine may still be warming up. */
const readyDeadlineMs = 60_000;
/** A service ends by itself within this, also when what it depends on is silent (`close-in-time.ts`). */
const stopDeadlineMs = 30_000;

const filesOf = (files: LocalFiles, name: string) => ({
  record: join(files.dir, `${name}.process`),
  described: join(files.dir, `${name}.json`),
  log: join(files.dir, `${name}.log`),
});

/**
 * Starts `fabric serve <roles>` in the background and answers when it is ready; its log is beside its record. Told to stop
 * meanwhile, it ends what it started and rejects.
 */
export async function startServiceProcess(
  files: LocalFiles,
  name: string,
  roles: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<ServiceProcess> {
  await mkdir(files.dir, { recursive: true, mode: 0o700 });
  const { record, described, log } = filesOf(files, name);
  const before = await loadLive(record);
  if (before !== undefined)
    throw new Fault(
      "USAGE",
      `\`${name}\` runs already as process ${String(before.pid)}; \`fabric down\` ends it`,
    );
  const port = await freePort();
  await writeAtomically(described, JSON.stringify({ name, roles, port }));
  const identity = await launch(
    {
      command: process.execPath,
      args: [
        // Without a role it serves all of them.
        ...(roles.length === 0 || roles.includes("gate") ? gateHeapFlags : []),
        fileURLToPath(new URL("./main.js", import.meta.url)),
        "serve",
        ...roles,
      ],
      env: { ...inherited(), FABRIC_ENV_FILE: files.envFile, FABRIC_HTTP_PORT: String(port), ...settings },
      cwd: files.dir,
    },
    record,
    log,
  );
  if (identity === undefined) throw new Fault("STACK_FAILED", `\`${name}\` ended at once; see ${log}`);
  try {
    await untilReady(name, port, record, log, signal);
  } catch (error) {
    if (signal?.aborted === true) await stopServiceProcess(files, name);
    throw error;
  }
  return { name, roles, port, pid: identity.pid, startedMs: Date.now() };
}

/** Only what a process needs to run at all; no key of an agent or a provider goes into a service. */
function inherited(): Record<string, string | undefined> {
  const { PATH, HOME, LANG, TZ, TMPDIR, FABRIC_RUN_MARK } = thisMachine().env;
  return { PATH, HOME, LANG, TZ, TMPDIR, FABRIC_RUN_MARK };
}

async function untilReady(
  name: string,
  port: number,
  record: string,
  log: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const until = Date.now() + readyDeadlineMs;
  let last = "no answer";
  while (Date.now() < until) {
    signal?.throwIfAborted();
    if ((await loadLive(record)) === undefined)
      throw new Fault("STACK_FAILED", `\`${name}\` ended; see ${log}`);
    const answer = await readReadiness(port);
    if (answer.ready) return;
    last = answer.text;
    await wait(50);
  }
  throw new Fault(
    "STACK_FAILED",
    `\`${name}\` is not ready after ${String(readyDeadlineMs / 1000)} s (${last}); see ${log}`,
  );
}

/** What `/readyz` of a service says now. */
export async function readReadiness(port: number): Promise<{ ready: boolean; text: string; body: unknown }> {
  try {
    const response = await fetch(`http://127.0.0.1:${String(port)}/readyz`, {
      signal: AbortSignal.timeout(2_000),
    });
    const text = await response.text();
    return { ready: response.ok, text, body: JSON.parse(text) as unknown };
  } catch (error) {
    return { ready: false, text: error instanceof Error ? error.message : String(error), body: null };
  }
}

/** How far behind a service is, from its metrics: the host by records and seconds, the relay by the oldest waiting row. */
export async function readLag(port: number): Promise<string> {
  const text = await fetch(`http://127.0.0.1:${String(port)}/metrics`, { signal: AbortSignal.timeout(2_000) })
    .then((response) => response.text())
    .catch(() => "");
  const values = (name: string): number[] =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].map((found) => Number(found[1]));
  const records = values("fabric_host_lag_records");
  const waiting = values("fabric_outbox_backlog_age_seconds");
  return [
    ...(records.length === 0
      ? []
      : [
          `${String(records.reduce((sum, one) => sum + one, 0))} records, ${Math.max(...values("fabric_host_lag_seconds"), 0).toFixed(1)} s`,
        ]),
    ...(waiting.length === 0 ? [] : [`outbox ${Math.max(...waiting).toFixed(1)} s`]),
  ].join(" · ");
}

/** Every service process of the stack that is alive. */
export async function listServiceProcesses(files: LocalFiles): Promise<ServiceProcess[]> {
  const names = await readdir(files.dir).catch(() => [] as string[]);
  const found: ServiceProcess[] = [];
  for (const file of names.filter((one) => one.endsWith(".process")).sort()) {
    const name = basename(file, ".process");
    const live = await loadLive(join(files.dir, file));
    const described = await readFile(filesOf(files, name).described, "utf8").then(
      (text) => describedSchema.safeParse(JSON.parse(text)),
      () => null,
    );
    if (live === undefined || described?.success !== true) continue;
    const { mtimeMs } = await stat(join(files.dir, file));
    found.push({ ...described.data, pid: live.pid, startedMs: mtimeMs });
  }
  return found;
}

/** Ends one service in good order, by force past the deadline. */
export async function stopServiceProcess(files: LocalFiles, name: string): Promise<void> {
  const { record, described } = filesOf(files, name);
  await endRecorded(record, "SIGTERM", stopDeadlineMs);
  await rm(record, { force: true });
  await rm(described, { force: true });
}

/** Ends all of them at once; none waits for another. */
export async function stopServiceProcesses(files: LocalFiles): Promise<number> {
  const running = await listServiceProcesses(files);
  await Promise.all(running.map((one) => stopServiceProcess(files, one.name)));
  return running.length;
}
