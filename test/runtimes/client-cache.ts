import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { ClientDrive } from "../../services/platform/runtime-room.ts";
import { projectDir } from "../harness/stack.ts";

/** A client that is installed in the cache. */
export interface CachedClient {
  readonly program: string;
  readonly version: string;
  readonly firstPath: string | undefined;
}

const installTimeoutMs = 15 * 60_000;
const outputMaxBytes = 64 * 2 ** 20;

/** Package managers need the machine's proxy and certificate settings, never its keys. */
const environment = (): Record<string, string | undefined> =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/KEY|TOKEN|SECRET|PASSWORD|^(ANTHROPIC|OPENAI|CLAUDE|CODEX)/i.test(name),
    ),
  );

function execute(command: string, args: readonly string[], env = environment()): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    env,
    encoding: "utf8",
    timeout: installTimeoutMs,
    maxBuffer: outputMaxBytes,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${String(error ?? stderr.slice(-2000))}`);
  return stdout.trim();
}

function npmInstall(dir: string, packages: readonly string[], nodeDir?: string): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "package.json"), '{ "private": true }\n');
  const env = environment();
  const flags = ["--prefix", dir, "--no-save", "--no-package-lock", "--no-audit", "--no-fund"];
  execute("npm", ["install", ...flags, ...packages], {
    ...env,
    ...(nodeDir === undefined ? {} : { PATH: nodeDir + delimiter + (env["PATH"] ?? "") }),
  });
}

/** Installs the exact versions of a room into `.fabric/clients/<runtime>`, once; a second call only looks. */
export function installClient(runtime: string, drive: ClientDrive): CachedClient {
  const dir = join(projectDir, ".fabric", "clients", runtime);
  const marker = join(dir, "pins.json");
  const pins = JSON.stringify(drive.pins);
  const { node, npm, pip } = drive.pins;
  const nodeDir = node === undefined ? undefined : join(dir, "node/node_modules/node/bin");
  if (!existsSync(marker) || readFileSync(marker, "utf8") !== pins) {
    process.stderr.write(`installing ${[...(npm ?? []), ...(pip ?? [])].join(" ")} into .fabric/clients\n`);
    rmSync(dir, { recursive: true, force: true });
    if (node !== undefined) npmInstall(join(dir, "node"), [`node@${node}`]);
    if (npm !== undefined) npmInstall(dir, npm, nodeDir);
    if (pip !== undefined) {
      execute("python3", ["-m", "venv", dir]);
      execute(join(dir, "bin/pip"), ["install", "--quiet", ...pip]);
    }
    writeFileSync(marker, pins);
  }
  // The first pin is the client itself, and the cache holds exactly what was pinned.
  const version = (npm ?? pip ?? [])[0]?.split(/@|==/).pop() ?? "unknown";
  return { program: drive.programIn(dir), version, firstPath: drive.pathIn?.(dir) ?? nodeDir };
}
