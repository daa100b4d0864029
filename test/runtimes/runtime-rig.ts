import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClientOutcome } from "../../services/doctor/run-client.ts";
import { cleanEnvironment, runClient } from "../../services/doctor/run-client.ts";
import type { ModelScript } from "../../services/doctor/scripted-model.ts";
import { applyChanges } from "../../services/install/config-files.ts";
import type { InstallPlan } from "../../services/install/plan-install.ts";
import { planInstall } from "../../services/install/plan-install.ts";
import type {
  Attempt,
  Bypass,
  ClientDrive,
  Damage,
  HookForm,
  RuntimeRoom,
} from "../../services/platform/runtime-room.ts";
import { projectDir } from "../harness/stack.ts";
import type { CachedClient } from "./client-cache.ts";

/** One run of a client in an empty home of its own. */
export interface RigRun {
  readonly script: ModelScript;
  /** Where the hooks point; undefined: no hook is installed. */
  readonly gateUrl?: string;
  readonly token?: string;
  readonly form?: HookForm;
  /** Breaks something of the installation, before the client starts. */
  readonly spoil?: (plan: InstallPlan) => void;
  readonly damage?: Damage;
  /** In place of how the client usually starts. */
  readonly start?: NonNullable<Bypass["start"]>;
  readonly attempt?: Attempt;
  readonly timeoutMs?: number;
  /** How long a call waits for its approval; default: not at all. */
  readonly approvalWaitMs?: number;
}
export interface RigOutcome extends ClientOutcome {
  readonly home: string;
  readonly workspace: string;
}

export interface RuntimeRig {
  run(options: RigRun): Promise<RigOutcome>;
  /** Of the run that began last, for a look while it goes on. */
  lastWorkspace(): string;
  close(): void;
}

const runTimeoutMs = 240_000;
/** Clients on Node compile themselves at each start in an empty home, which takes longer than all the rest. */
const compileCache = join(projectDir, ".fabric", "clients", "compile-cache");

/** Runs a room's real client, with its hooks installed as `fabric install` does it. */
export function createRuntimeRig(room: RuntimeRoom, client: CachedClient): RuntimeRig {
  const folders: string[] = [];
  const workspaceIn = (home: string): string => join(home, "workspace");
  return {
    lastWorkspace: () => workspaceIn(folders.at(-1) ?? ""),
    async run(options) {
      const home = mkdtempSync(join(tmpdir(), `fabric-${room.adapter.runtime}-`));
      folders.push(home);
      const workspace = workspaceIn(home);
      mkdirSync(workspace);
      if (options.gateUrl !== undefined) {
        const plan = await planInstall({
          room,
          home,
          form: options.form ?? room.setup.forms[0],
          gateUrl: options.gateUrl,
          token: options.token ?? "made-up-token",
          program: client.program,
          clientVersion: client.version,
          tools: { hasTimeout: true, node: process.execPath },
          ...(options.approvalWaitMs === undefined ? {} : { approvalWaitMs: options.approvalWaitMs }),
        });
        await applyChanges([...plan.ownFiles, ...plan.changes]);
        const env = cleanEnvironment(home, client.program, client.firstPath);
        mkdirSync(join(home, "tmp"), { recursive: true });
        const program = { argv: [client.program], env, workingDirectory: workspace, home };
        await room.setup.consent?.give(program, plan.target);
        options.spoil?.(plan);
        if (options.damage !== undefined) {
          const path = options.damage.pathOf(plan.target);
          const text = options.damage.toDamaged(readFileSync(path, "utf8"));
          if (text === null) rmSync(path);
          else writeFileSync(path, text);
        }
      }
      const outcome = await runClient({
        drive: driveOf(room.drive, options),
        program: client.program,
        firstPath: client.firstPath,
        home,
        workspace,
        script: options.script,
        timeoutMs: options.timeoutMs ?? runTimeoutMs,
        env: { NODE_COMPILE_CACHE: compileCache },
      });
      return { ...outcome, home, workspace };
    },
    close() {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The client's drive, with what a run wants otherwise. */
const driveOf = (drive: ClientDrive, { start, attempt }: RigRun): ClientDrive => ({
  ...drive,
  async prepare(run) {
    const usual = await (start ?? drive.prepare)(run);
    return attempt === undefined ? usual : attempt.change(usual, run);
  },
});

/** A server in the gate's place that answers every request in one wrong way. */
export interface WrongGate {
  readonly url: string;
  close(): void;
}
export async function startWrongGate(kind: "silent" | "garbage" | "error" | "cut"): Promise<WrongGate> {
  const server = createServer((request, response) => {
    request.resume();
    if (kind === "garbage") response.end("<html>not the gate</html>");
    else if (kind === "error") response.writeHead(500).end("{}");
    else if (kind === "cut") request.on("end", () => request.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** An address at which nothing listens. */
export async function deadAddress(): Promise<string> {
  const gone = await startWrongGate("silent");
  gone.close();
  return gone.url;
}
