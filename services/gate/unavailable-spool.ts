import { appendFile, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { Fault } from "../../schemas/faults.ts";
import type { Log } from "../platform/log.ts";
import type { TenantKeys } from "../platform/vault-seal.ts";
import { openInline, sealInline } from "../platform/vault-seal.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";

/** Calls that passed while nothing could be recorded, until they are. */
export interface UnavailableSpool {
  /** False: it is full or cannot be written, and the call may not pass. */
  add(work: HookWork): Promise<boolean>;
  /** Records what waits; what cannot be recorded yet stays. Returns how many were. */
  drain(): Promise<number>;
  close(): Promise<void>;
}

export interface SpoolOptions {
  readonly file: string;
  readonly keys: TenantKeys;
  readonly log: Log;
  /** Records a call as it was told. */
  readonly record: (work: HookWork) => Promise<HookOutcome>;
  readonly maxBytes?: number;
  readonly drainEveryMs?: number;
}

/** About a thousand calls: past it an outage is no hiccup, and reading stops too. */
const defaultMaxBytes = 4 * 1024 * 1024;
const defaultDrainEveryMs = 2_000;
/** Larger payloads do not pass: they would fill the spool. */
const payloadMaxBytes = 65_536;

/**
 * A bounded file of sealed lines. A line is written before its call's answer leaves, and goes when it is recorded.
 * INVARIANT: what passed unrecorded is recorded once the database is back, also over a restart
 * (test/integration/gate-unavailable.test.ts).
 */
export function openUnavailableSpool(options: SpoolOptions): UnavailableSpool {
  const { file, keys, log } = options;
  const taken = `${file}.taken`;
  const maxBytes = options.maxBytes ?? defaultMaxBytes;
  /** Writes and drains one after the other. */
  let turn: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = turn.then(work);
    turn = next.catch(() => undefined);
    return next;
  }

  async function append(work: HookWork): Promise<boolean> {
    if (work.raw.length > payloadMaxBytes) return false;
    // In memory since the tenant's last decision; a key that would have to be fetched cannot be now.
    const key = await keys.current(work.tenantId);
    const bytes = Buffer.from(JSON.stringify({ ...work, raw: work.raw.toString("base64") }), "utf8");
    const line = `${JSON.stringify({ tenant: work.tenantId, sealed: sealInline(key, linePlace, bytes).toString("base64") })}\n`;
    const size = (await sizeOf(file)) + (await sizeOf(taken));
    if (size + line.length > maxBytes) return false;
    await appendFile(file, line, { mode: 0o600, flush: true });
    return true;
  }

  async function drain(): Promise<number> {
    // What is left of a drain that was interrupted comes first.
    if ((await sizeOf(taken)) === 0) {
      if ((await sizeOf(file)) === 0) return 0;
      await rename(file, taken);
    }
    const lines = (await readFile(taken, "utf8")).split("\n").filter((line) => line !== "");
    let done = 0;
    for (const line of lines) {
      const work = await readLine(line);
      const outcome = work === null ? null : await options.record(work);
      if (outcome?.kind === "failed") break;
      done += 1;
    }
    const left = lines.slice(done);
    if (left.length === 0) await rm(taken, { force: true });
    else {
      await writeFile(`${taken}.new`, `${left.join("\n")}\n`, { mode: 0o600, flush: true });
      await rename(`${taken}.new`, taken);
    }
    if (done > 0) log.info({ calls: done, left: left.length }, "calls that passed unrecorded are recorded");
    return done;
  }

  /** Null: nobody can read it any more; it is said, and goes. */
  async function readLine(line: string): Promise<HookWork | null> {
    try {
      const { tenant, sealed } = JSON.parse(line) as { tenant: string; sealed: string };
      const bytes = await openInline(keys, tenant, linePlace, Buffer.from(sealed, "base64"));
      const work = JSON.parse(bytes.toString("utf8")) as HookWork & { readonly raw: unknown };
      return { ...work, raw: Buffer.from(String(work.raw), "base64") };
    } catch (error) {
      if (error instanceof Fault && error.kind === "transient") throw error;
      log.error({ err: error }, "a line of the spool cannot be read; what passed is not recorded");
      return null;
    }
  }

  const timer = setInterval(() => {
    void inTurn(drain).catch((error: unknown) => {
      log.warn({ err: error }, "the spool was not drained; trying again");
    });
  }, options.drainEveryMs ?? defaultDrainEveryMs);
  timer.unref();
  return {
    add: (work) =>
      inTurn(() => append(work)).catch((error: unknown) => {
        log.error({ err: error }, "the spool cannot be written; nothing passes unrecorded");
        return false;
      }),
    drain: () => inTurn(drain),
    async close() {
      clearInterval(timer);
      await turn;
    },
  };
}

const linePlace = "gate/unavailable-spool";

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    (found) => found.size,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return 0;
      throw error;
    },
  );
}
