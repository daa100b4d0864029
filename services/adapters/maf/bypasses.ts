import type { Bypass, Limit } from "../../platform/runtime-room.ts";
import { drive, toStart } from "./drive.ts";
import { packageFolder } from "./setup.ts";

/** A program of the agent's builder calls the tool itself: no agent, so no middleware. */
const directInvoke: Bypass = {
  behaviour: "bypass_direct_invoke",
  turns: [],
  leaves: "direct.txt",
  start: (run) => Promise.resolve(toStart("direct", run, "echo ran > direct.txt")),
};
/** A stream that nobody reads to its end: the call in it is judged all the same, and the run's end is told by nobody. */
const abandonedStream: Bypass = {
  behaviour: "bypass_abandoned_stream",
  turns: [drive.tools.shell("git push --force nowhere main; echo ran > streamed.txt")],
  leaves: "streamed.txt",
  start: (run) => Promise.resolve(toStart("abandon", run, run.prompt)),
};
/** The package is there and does not load: the agent's program ends at its import. */
const unloadedPackage: Bypass = {
  behaviour: "bypass_not_loaded",
  turns: [drive.tools.shell("echo hi > unguarded.txt")],
  leaves: "unguarded.txt",
  damage: {
    pathOf: (target) => `${packageFolder(target)}/__init__.py`,
    toDamaged: () => "this does not parse (\n",
  },
};

/** Ways past the middleware, as far as they are known. */
export const bypasses: readonly Bypass[] = [directInvoke, abandonedStream, unloadedPackage];

export const limits: Readonly<Record<`bypass_${string}`, Limit>> = {
  [directInvoke.behaviour]: {
    why: "middleware belongs to an agent's run; `tool.invoke()` in the builder's own code passes none",
    tried: "`run_shell.invoke(arguments=…)` in a program whose agent has the middleware",
    mitigation:
      "review for direct calls, and let what has effects be checked again at the resource: a lifecycle callback is no authorization",
    attempt: {
      setting: '`@tool(approval_mode="always_require")`',
      helps: false,
      change: (start) =>
        Promise.resolve({ ...start, env: { ...start.env, AGENT_APPROVAL_MODE: "always_require" } }),
    },
  },
};
