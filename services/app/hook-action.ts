import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Actions } from "../cli/actions.ts";
import type { ExitCode } from "../cli/report.ts";
import { findOnPath } from "../install/find-client.ts";
import { readRecord } from "../install/installed-record.ts";
import { fabricDirOf } from "../install/plan-install.ts";
import { thisMachine } from "../stack/machine.ts";

/** What clients take for a no: this code, with a text on standard error. */
const refusedCode = 2;

/**
 * `fabric hook <runtime>`: the installed command hook on this process' own standard input and output, so that a person sees
 * what the client would. In front of an effect every failure is a no, in the form that clients honour.
 */
export function hookAction(): Pick<Actions, "runtimeHook"> {
  return {
    async runtimeHook(common, { runtime, mode, home }) {
      try {
        const dir = fabricDirOf(home === undefined ? homedir() : resolve(home), runtime);
        const record = await readRecord(dir);
        if (record === null)
          throw new Fault("USAGE", `nothing is installed for ${runtime}; run \`fabric install ${runtime}\``);
        const [program, ...args] = await toCommand(dir, runtime);
        const code = await run(program, [...args, mode, record.configurationHash], common.signal);
        // Standard output is the hook's reply: nothing else is written to it.
        return { text: "", exit: code };
      } catch (error) {
        if (mode === "observe") throw error;
        const why = error instanceof Fault ? error.message : String(error);
        process.stderr.write(`GATE_UNREACHABLE: the hook could not be run: ${why}; nothing was allowed\n`);
        return { text: "", exit: refusedCode };
      }
    },
  };
}

async function toCommand(dir: string, runtime: string): Promise<readonly [string, ...string[]]> {
  const [shell, node] = [`${dir}/hook.sh`, `${dir}/hook.mjs`];
  if (!existsSync(shell) && !existsSync(node))
    throw new Fault("USAGE", `${runtime} has no command hooks: what is installed runs inside the client`);
  const hasCurl = (await findOnPath("curl", thisMachine().env["PATH"] ?? "")) !== null;
  return hasCurl && existsSync(shell) ? ["/bin/sh", shell] : [process.execPath, node];
}

/** Of a hook's own codes there are two; every other end, a signal too, has allowed nothing. */
function run(program: string, args: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  return new Promise((settle, fail) => {
    const child = spawn(program, args, { stdio: "inherit", signal });
    child.on("error", fail);
    child.on("close", (code) => settle(code === 0 ? 0 : refusedCode));
  });
}
