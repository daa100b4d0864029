import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createGateLink } from "../../services/adapters/codex/app-server/gate-link.ts";
import { room as hermes } from "../../services/adapters/hermes/room.ts";
import { room as maf } from "../../services/adapters/maf/room.ts";
import { room as openclaw } from "../../services/adapters/openclaw/room.ts";
import { room as opencode } from "../../services/adapters/opencode/room.ts";
import { createGateClient } from "../../services/adapters/sdk/gate/gate-client.ts";
import type { RuntimeRoom } from "../../services/platform/runtime-room.ts";
import { claudeCall } from "./hook-payloads.ts";
import { projectDir } from "./stack.ts";

/** Where a form asks, and what lies beside it. */
export interface FormPlace {
  /** An empty folder of its own. */
  readonly folder: string;
  readonly gateUrl: string;
  readonly token: string;
  readonly deadlineMs: number;
  readonly waitMs?: number;
}
/** What became of a call. */
export interface FormOutcome {
  readonly ran: boolean;
  /** What the model would read, or whoever looks at the client. */
  readonly told: string;
}
/** A form in which a client asks the gate about a shell command, run without its client. */
export interface GatedForm {
  readonly name: string;
  /** What this form reads as a yes. */
  readonly yes: { readonly type: string; readonly body: string };
  /** Its yes needs no content type: it has a first line of its own. */
  readonly hasOwnMark?: boolean;
  ask(place: FormPlace, call: { readonly id: string; readonly command: string }): Promise<FormOutcome>;
  /** The command line of the process that asks; absent: it asks inside this one. */
  readonly argv?: (place: FormPlace) => readonly string[];
  /** What that process reads from standard input. */
  readonly toInput?: (call: { readonly id: string; readonly command: string }) => string;
}

const json = "application/json; charset=utf-8";
const pluginYes = { type: json, body: JSON.stringify({ decision: "allow" }) };

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
/** Runs a program to its end. */
export async function runToEnd(argv: readonly string[], input: string): Promise<Ended> {
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, { cwd: projectDir });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const code = await new Promise<number | null>((done) => child.on("close", done));
  return { code, stdout, stderr };
}

const shims = fileURLToPath(new URL("../../services/install/shim/", import.meta.url));
function shim(name: "hook.sh" | "hook.mjs"): GatedForm {
  const argv = ({ folder, gateUrl, token, deadlineMs, waitMs }: FormPlace): readonly string[] => {
    writeFileSync(join(folder, "url"), `${gateUrl}/v1/hooks/claude-code\n`);
    writeFileSync(join(folder, "token"), `${token}\n`);
    writeFileSync(
      join(folder, "deadlines"),
      `${String(deadlineMs / 1000)} 3 ${String(Math.ceil((waitMs ?? 0) / 1000))}\n`,
    );
    copyFileSync(join(shims, name), join(folder, name));
    return [name === "hook.sh" ? "/bin/sh" : process.execPath, join(folder, name), "gate", "hash"];
  };
  const toInput: GatedForm["toInput"] = ({ id, command }) =>
    JSON.stringify(claudeCall(command, { tool_use_id: id }));
  return {
    name,
    yes: { type: "text/x-fabric-hook; charset=utf-8", body: "fabric 0\n{}" },
    hasOwnMark: true,
    argv,
    toInput,
    async ask(place, call) {
      const { code, stdout, stderr } = await runToEnd(argv(place), toInput(call));
      // A reply on standard output is a no when it says so; every other end with 0 lets the tool run.
      return { ran: code === 0 && !stdout.includes('"deny"'), told: `${stdout}${stderr}` };
    },
  };
}

/** Lays out what an installation would, for a client that is not there. */
function install(room: RuntimeRoom, { folder, gateUrl, token, deadlineMs, waitMs }: FormPlace): void {
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, token);
  const edits = room.setup.edits({
    home: folder,
    form: "plugin",
    gateUrl,
    tokenFile,
    token,
    fabricDir: join(folder, "fabric"),
    configurationHash: "sha256:1",
    gatingCommand: "",
    observingCommand: "",
    gatingDeadlineMs: deadlineMs,
    observingDeadlineMs: deadlineMs,
    approvalWaitMs: waitMs ?? 0,
    clientVersion: "1",
    packagesDir: join(folder, "python"),
  });
  for (const { path, toInstalled } of edits) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, toInstalled(existsSync(path) ? readFileSync(path, "utf8") : null));
  }
}

type Hook = (...args: readonly unknown[]) => Promise<unknown>;

const inOpenCode: GatedForm = {
  name: "the plugin of OpenCode",
  yes: pluginYes,
  async ask(place, { id, command }) {
    install(opencode, place);
    const made = (await import(pathToFileURL(join(place.folder, "fabric/plugin/index.mjs")).href)) as {
      PolicyHookFabric: (context: object) => Promise<Readonly<Record<string, Hook>>>;
    };
    const context = { directory: "/w", worktree: "/w", project: {}, serverUrl: "http://x/" };
    const hooks = await made.PolicyHookFabric(context);
    try {
      const call = { tool: "bash", sessionID: "ses_1", callID: id };
      await hooks["tool.execute.before"]?.(call, { args: { command, description: "x" } });
      return { ran: true, told: "" };
    } catch (error) {
      return { ran: false, told: (error as Error).message };
    }
  },
};

const inOpenClaw: GatedForm = {
  name: "the plugin of OpenClaw",
  yes: pluginYes,
  async ask(place, { id, command }) {
    install(openclaw, place);
    const made = (await import(pathToFileURL(join(place.folder, "fabric/plugin/index.mjs")).href)) as {
      default: { register: (api: { on: (name: string, hook: Hook) => void }) => void };
    };
    const hooks = new Map<string, Hook>();
    made.default.register({ on: (name, hook) => hooks.set(name, hook) });
    const answer = (await hooks.get("before_tool_call")?.(
      { toolName: "exec", params: { command }, runId: "r1", toolCallId: id },
      { sessionKey: "agent:main:main", sessionId: "s1" },
    )) as { block?: boolean; blockReason?: string } | undefined;
    return { ran: answer?.block !== true, told: answer?.blockReason ?? "" };
  },
};

const drivers = fileURLToPath(new URL("../fixtures/python-plugins/", import.meta.url));
function inPython(name: string, driver: string, room: RuntimeRoom, file: string): GatedForm {
  const argv = (place: FormPlace): readonly string[] => {
    install(room, place);
    return ["python3", join(drivers, driver), join(place.folder, file)];
  };
  const toInput: GatedForm["toInput"] = (call) => JSON.stringify(call);
  return {
    name,
    yes: pluginYes,
    argv,
    toInput,
    async ask(place, call) {
      const { code, stdout, stderr } = await runToEnd(argv(place), toInput(call));
      if (code !== 0) throw new Error(`the driver of ${name} failed: ${stderr}`);
      return JSON.parse(stdout) as FormOutcome;
    },
  };
}

const inHarness: GatedForm = {
  name: "the SDK",
  yes: {
    type: json,
    body: JSON.stringify({
      decision: "allow",
      decision_id: "dec_1",
      reason_code: "ALLOWED",
      message: "fine",
      policy_revision: "p@1",
      plan_digest: null,
      correlation_id: "cor_1",
      constraints: {},
      matched_rules: [],
      labels: [],
      repeated: false,
    }),
  },
  async ask({ gateUrl, token, deadlineMs }, { id, command }) {
    const client = createGateClient({ url: gateUrl, token, timeoutMs: deadlineMs, localProfile: "never" });
    try {
      const { decision, reasonCode, message } = await client.decide({
        sessionId: "s-1",
        callId: id,
        tool: "shell.run",
        input: { command },
        workingDirectory: "/w",
      });
      return { ran: decision === "allow", told: `${reasonCode}: ${message}` };
    } finally {
      await client.close();
    }
  },
};

const inAppServer: GatedForm = {
  name: "the proxy of Codex's App Server",
  yes: { type: json, body: JSON.stringify({ order: "yes", reason: "ALLOWED: fine" }) },
  async ask({ gateUrl, token, deadlineMs }, { id, command }) {
    const link = createGateLink({ gateUrl, token: () => token, timeoutMs: deadlineMs });
    const place = { threadId: "t1", turnId: "u1", itemId: id };
    const params = { kind: "command", ...place, startedAtMs: 1, command, cwd: "/w" };
    const payload = {
      method: "item/commandExecution/requestApproval",
      session_id: "t1",
      turn_id: "u1",
      call_id: id,
      working_directory: "/w",
      params,
    };
    // A question that is not answered is a no (the mediator's word for a rejection).
    const { order, reason } = await link
      .ask(payload)
      .catch((error: unknown) => ({ order: "no", reason: `GATE_UNREACHABLE: ${String(error)}` }));
    return { ran: order === "yes", told: reason };
  },
};

/** Plugins of clients that are written in Python need one, as their clients do. */
export const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasPython)
  process.stderr.write("python3 is not installed: the plugins of Hermes and MAF are not tried\n");

/** Every form that can be run without its client. A client's own HTTP hooks cannot: what it makes of an answer is its own. */
export const gatedForms: readonly GatedForm[] = [
  shim("hook.sh"),
  shim("hook.mjs"),
  inOpenCode,
  inOpenClaw,
  ...(hasPython
    ? [
        inPython(
          "the plugin of Hermes",
          "hermes.py",
          hermes,
          ".hermes/plugins/policy-hook-fabric/__init__.py",
        ),
        inPython("the middleware of MAF", "maf.py", maf, "python"),
      ]
    : []),
  inHarness,
  inAppServer,
];

/** Reports that a form keeps because nobody took them. */
export function countKept({ folder }: Pick<FormPlace, "folder">): number {
  const lines = join(folder, "fabric/spool/reports.jsonl");
  const files = join(folder, "spool");
  const ofPlugin = existsSync(lines) ? readFileSync(lines, "utf8").trim().split("\n").length : 0;
  const ofShim = existsSync(files) ? readdirSync(files).filter((name) => name.endsWith(".json")).length : 0;
  return ofPlugin + ofShim;
}

/** Tells a call's result by a plugin. Resolves when the plugin was given it, not when it was told. */
export async function tellResult(name: "opencode" | "hermes", place: FormPlace): Promise<void> {
  if (name === "hermes") {
    install(hermes, place);
    const file = join(place.folder, ".hermes/plugins/policy-hook-fabric/__init__.py");
    const argv = ["python3", join(drivers, "hermes.py"), file, "tell"];
    const { code, stderr } = await runToEnd(argv, JSON.stringify({ id: "call-1", command: "ls" }));
    if (code !== 0) throw new Error(`the driver of Hermes failed: ${stderr}`);
    return;
  }
  install(opencode, place);
  const file = pathToFileURL(join(place.folder, "fabric/plugin/gate-client.mjs")).href;
  const made = (await import(file)) as {
    openGate(options: object): { tell(payload: unknown): Promise<void> };
  };
  const folder = join(place.folder, "fabric/plugin");
  await made.openGate({ runtime: name, version: "1", folder }).tell({ hook: "told" });
}
