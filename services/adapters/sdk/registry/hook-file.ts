import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { JsonObject } from "../json.ts";
import { isJsonObject } from "../json.ts";
import type { HookPoint } from "./hook-points.ts";
import type { HookFileEntry } from "./hook-file-entries.ts";
import { HookFileError, parseHookFile } from "./hook-file-entries.ts";
import type { Lifecycle } from "../lifecycle.ts";
import type { HookHandler } from "./registry.ts";

/** Longest answer of a command. */
const answerMaxBytes = 1024 * 1024;

export interface InstalledHookFile {
  /** SHA-256 of the file, `sha256:` and hex. */
  readonly digest: string;
  readonly handlers: readonly string[];
  /** Takes all of its handlers away again. */
  uninstall(): void;
}

/**
 * Installs the handlers of a configuration file, in its order, and tells `ConfigLoaded`. Everything that is wrong with the
 * file is in one error, and then nothing is installed: a harness without its rules does not start.
 */
export async function installHookFile(
  { hooks, tell }: Pick<Lifecycle, "hooks" | "tell">,
  file: string,
  { sessionId }: { readonly sessionId: string },
): Promise<InstalledHookFile> {
  const text = await readFile(file, "utf8");
  const entries = parseHookFile(text, file);
  const folder = dirname(resolve(file));
  const problems: string[] = [];
  const ready: { entry: HookFileEntry; handler: HookHandler<HookPoint> }[] = [];
  for (const entry of entries) {
    try {
      ready.push({ entry, handler: await toHandler(entry, folder) });
    } catch (error) {
      problems.push(`${entry.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (problems.length > 0) throw new HookFileError(file, problems);
  const uninstalls = ready.map(({ entry, handler }) => {
    const options = {
      name: entry.name,
      ...(entry.match === undefined ? {} : { match: entry.match }),
      ...(entry.timeoutMs === undefined ? {} : { timeoutMs: entry.timeoutMs }),
    };
    return entry.observes
      ? hooks.observe(entry.point, handler, options)
      : hooks.hook(entry.point, handler, options);
  });
  const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`;
  const handlers = ready.map(({ entry }) => entry.name);
  await tell("ConfigLoaded", { sessionId, source: file, digest, handlers });
  return {
    digest,
    handlers,
    uninstall() {
      for (const one of uninstalls) one();
    },
  };
}

async function toHandler(entry: HookFileEntry, folder: string): Promise<HookHandler<HookPoint>> {
  const { action } = entry;
  switch (action.kind) {
    case "reply":
      return () => action.reply;
    case "command":
      return async (event, { signal }) =>
        await runCommand(action.argv, folder, { point: entry.point, ...event }, signal);
    case "module": {
      const loaded = (await import(pathToFileURL(resolve(folder, action.path)).href)) as Record<
        string,
        unknown
      >;
      const handler = loaded[action.name];
      if (typeof handler !== "function")
        throw new TypeError(`${action.path} exports no function "${action.name}"`);
      return handler as HookHandler<HookPoint>;
    }
  }
}

/** The event as JSON on standard input, the reply as JSON on standard output; any other exit code than 0 is a failure. */
function runCommand(
  [program, ...rest]: readonly [string, ...string[]],
  folder: string,
  event: object,
  signal: AbortSignal,
): Promise<JsonObject | null> {
  return new Promise((resolvePromise, reject) => {
    const child = spawn(program, rest, { cwd: folder, stdio: ["pipe", "pipe", "ignore"], signal });
    let said = "";
    child.on("error", reject);
    // One that does not read its input is no failure of its own.
    child.stdin.on("error", () => undefined);
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (chunk: string) => {
      said += chunk;
      if (said.length > answerMaxBytes) {
        child.kill("SIGKILL");
        reject(new RangeError("the command says more than a reply"));
      }
    });
    child.on("close", (code) => {
      if (code !== 0) {
        reject(new Error(`the command ended with ${String(code)}`));
        return;
      }
      try {
        resolvePromise(toReply(said));
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

function toReply(said: string): JsonObject | null {
  if (said.trim() === "") return null;
  const parsed = JSON.parse(said) as unknown;
  if (!isJsonObject(parsed)) throw new TypeError("the command's reply is no JSON object");
  return parsed;
}
