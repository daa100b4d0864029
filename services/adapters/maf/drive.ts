import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ClientDrive, ClientStart, DriveRun } from "../../platform/runtime-room.ts";
import { packageFolder } from "./setup.ts";

/** Where the package lies that an agent's program imports, below the home of a canary or a test. */
const canaryFolder = (home: string): string => packageFolder({ packagesDir: `${home}/python` });
const agent = fileURLToPath(new URL("agent/agent.py", import.meta.url));

/** The framework is a library, so that a program of ours is the client. With the package in place it imports it, or ends. */
export function toStart(mode: "run" | "abandon" | "direct", run: DriveRun, stdin: string): ClientStart {
  const folder = canaryFolder(run.home);
  return {
    argv: [run.program, agent, mode, ...(existsSync(folder) ? [folder] : [])],
    env: {
      OPENAI_BASE_URL: `${run.modelUrl}/v1`,
      OPENAI_API_KEY: run.apiKey,
      AGENT_FRAMEWORK_USER_AGENT_DISABLED: "true",
      DO_NOT_TRACK: "1",
      NO_PROXY: "*",
      PYTHONDONTWRITEBYTECODE: "1",
    },
    stdin,
  };
}

/** Runs an agent with a shell tool, a file tool and a child agent. */
export const drive: ClientDrive = {
  pins: { pip: ["agent-framework-core==1.23.0", "agent-framework-openai==1.17.0"] },
  programIn: (dir) => `${dir}/bin/python`,
  tools: {
    shell: (command) => ({ name: "run_shell", input: { command } }),
    write: (path, content) => ({ name: "write_file", input: { path, content } }),
    subagent: (prompt) => ({ name: "delegate", input: { task: prompt } }),
  },
  prepare: (run) => Promise.resolve(toStart("run", run, run.prompt)),
};
