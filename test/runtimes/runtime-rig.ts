import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
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
import type { HookForm, RuntimeRoom } from "../../services/platform/runtime-room.ts";
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
  readonly timeoutMs?: number;
}
export interface RigOutcome extends ClientOutcome {
  readonly home: string;
  readonly workspace: string;
}

export interface RuntimeRig {
  run(options: RigRun): Promise<RigOutcome>;
  close(): void;
}

const runTimeoutMs = 120_000;

/** Runs a room's real client, with its hooks installed as `fabric install` does it. */
export function createRuntimeRig(room: RuntimeRoom, client: CachedClient): RuntimeRig {
  const folders: string[] = [];
  return {
    async run(options) {
      const home = mkdtempSync(join(tmpdir(), `fabric-${room.adapter.runtime}-`));
      folders.push(home);
      const workspace = join(home, "workspace");
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
        });
        await applyChanges([...plan.ownFiles, ...plan.changes]);
        const env = cleanEnvironment(home, client.program, client.firstPath);
        mkdirSync(join(home, "tmp"), { recursive: true });
        const program = { argv: [client.program], env, workingDirectory: workspace, home };
        await room.setup.consent?.give(program, plan.target);
        options.spoil?.(plan);
      }
      const outcome = await runClient({
        drive: room.drive,
        program: client.program,
        firstPath: client.firstPath,
        home,
        workspace,
        script: options.script,
        timeoutMs: options.timeoutMs ?? runTimeoutMs,
      });
      return { ...outcome, home, workspace };
    },
    close() {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

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
