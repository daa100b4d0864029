import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommandLine } from "../cli/program.ts";
import { thisMachine } from "../stack/machine.ts";
import { createActions } from "./actions.ts";
import { askSecret } from "./ask-secret.ts";
import { findPlace } from "./place.ts";

const stop = new AbortController();
/** A terminal and a wrapper (npx, timeout) may each pass the same Ctrl-C on: what follows at once is not a second one. */
const sameSignalMs = 1_000;
let askedMs: number | null = null;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    const nowMs = performance.now();
    // The second Ctrl-C is a person who does not want to wait.
    if (askedMs !== null && nowMs - askedMs > sameSignalMs) process.exit(130);
    askedMs ??= nowMs;
    stop.abort();
  });
}
// A reader that went away (`| head`) ends the command in good order: what it started has to be stopped.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  stop.abort();
});

const place = await findPlace(process.cwd());
const manifest = JSON.parse(await readFile(join(place.packageDir, "package.json"), "utf8")) as {
  version: string;
};
const exit = await runCommandLine(process.argv.slice(2), createActions(place), {
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  readStdin: async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString("utf8");
  },
  colour: process.stdout.isTTY && thisMachine().env["NO_COLOR"] === undefined,
  signal: stop.signal,
  version: manifest.version,
  askSecret,
  ...(process.stdout.isTTY ? { columns: process.stdout.columns } : {}),
  isWatched: process.stderr.isTTY,
});
process.exitCode = exit;
/**
 * Who asked for the end has it, and a service that failed ends, whatever handle is still open: a connection to a server that
 * is silent, or what a start had opened before it failed. Whoever supervises would take it for running.
 */
const lastHandlesMs = 2_000;
if (stop.signal.aborted || process.argv[2] === "serve")
  setTimeout(() => process.exit(), lastHandlesMs).unref();
