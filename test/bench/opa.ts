import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { findProgram, run, thisMachine } from "../../services/stack/machine.ts";
import type { Bench } from "./figure.ts";

/** The release that is compared with. */
const opaVersion = "v1.22.3";
const buildTimeoutMs = 900_000;
const startTimeoutMs = 20_000;

/** A running Open Policy Agent. */
export interface Opa {
  readonly url: string;
  readonly pid: number;
  /** Path of the decision in its HTTP interface. */
  readonly path: string;
}

/** `opa` of the PATH, else built with Go, once. */
async function findOpa(bench: Bench): Promise<string> {
  const machine = thisMachine();
  const installed = await findProgram(machine, "opa");
  if (installed !== undefined) return installed;
  const folder = join(bench.projectDir, ".fabric", "downloads", `opa-${opaVersion}`);
  const built = join(folder, "opa");
  if (existsSync(built)) return built;
  const go = await findProgram(machine, "go");
  if (go === undefined) {
    throw new Error("Open Policy Agent is the peer of this benchmark: put `opa` on the PATH, or install Go");
  }
  bench.progress(`Open Policy Agent ${opaVersion}: building with Go, once`);
  await mkdir(folder, { recursive: true });
  const made = await run(
    "env",
    [`GOBIN=${folder}`, go, "install", `github.com/open-policy-agent/opa@${opaVersion}`],
    {
      timeoutMs: buildTimeoutMs,
    },
  );
  if (made.exitCode !== 0) throw new Error(`go install opa: ${made.output.slice(-500)}`);
  return built;
}

/**
 * A policy of the same meaning, as far as OPA can tell: it parses no shell, so each denied command is a pattern over the
 * text. Patterns are RE2 as well.
 */
function toRego(denied: readonly string[], shipped: readonly string[]): string {
  const rules = [
    ...denied.map((command) => [
      command.replace(/ /g, "-"),
      `(^|[;&|(\\s/])${command.replace(" ", "\\s+")}(\\s|$)`,
    ]),
    ...shipped.map((pattern, index) => [`shipped-${String(index)}`, pattern]),
  ];
  const texts = rules.map(
    ([id = "", pattern = ""]) =>
      `deny contains ${JSON.stringify(id)} if {\n\tinput.tool == "shell.run"\n\tregex.match(${JSON.stringify(pattern)}, input.input.command)\n}\n`,
  );
  return `package fabric

${texts.join("\n")}
tools := {"shell.run", "file.read", "file.write", "file.edit", "web.fetch"}

allowed if {
	count(deny) == 0
	input.tool in tools
}

default decision := {"decision": "deny"}

decision := {"decision": "allow", "rules": deny} if allowed
decision := {"decision": "deny", "rules": deny} if not allowed
`;
}

/** Dangers that the default bundle knows, as patterns over the text. */
const shippedPatterns = [
  "\\bgit\\s+push\\b.*(--force|-f\\b)",
  "\\brm\\s+-[a-z]*r[a-z]*\\s+(/|~)",
  "\\bcurl\\b.*\\|\\s*(ba)?sh\\b",
  "\\.env\\b|id_rsa|\\.aws/credentials",
  "\\b(npm|yarn|pnpm)\\s+publish\\b",
  "\\bterraform\\s+destroy\\b",
  "\\bkubectl\\s+delete\\b",
  "\\bdd\\b.*of=/dev/",
  "/dev/tcp/",
  "--no-verify",
];

/** Starts OPA as a server with that policy, its logs off; one address of this machine. */
export async function startOpa(bench: Bench, denied: readonly string[]): Promise<Opa> {
  const opa = await findOpa(bench);
  const folder = await mkdtemp(join(tmpdir(), "fabric-bench-opa-"));
  bench.onEnd(() => rm(folder, { recursive: true, force: true }));
  const policy = join(folder, "fabric.rego");
  await writeFile(policy, toRego(denied, shippedPatterns));
  const port = await freePort();
  const child = spawn(
    opa,
    ["run", "--server", "--addr", `127.0.0.1:${String(port)}`, "--log-level", "error", policy],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  bench.onEnd(() => stop(child));
  const url = `http://127.0.0.1:${String(port)}`;
  const untilMs = performance.now() + startTimeoutMs;
  while (!(await isHealthy(url))) {
    if (child.exitCode !== null || performance.now() > untilMs) throw new Error("opa did not start");
    await wait(100);
  }
  return { url, pid: child.pid ?? 0, path: "/v1/data/fabric/decision" };
}

async function isHealthy(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    (answer) => answer.ok,
    () => false,
  );
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

async function freePort(): Promise<number> {
  const { createServer } = await import("node:net");
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}
