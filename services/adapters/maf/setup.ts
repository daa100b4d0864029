import { isAtLeast } from "../../platform/client-version.ts";
import { readGateClient, readPluginFiles, toPluginEdits } from "../../platform/plugin-files.ts";
import type { InstallTarget, RuntimeSetup } from "../../platform/runtime-room.ts";

const firstRecorded = "1.23.0";
const packageName = "policy_hook_fabric";

/** Where the package lies that an agent's program imports. */
export const packageFolder = ({ packagesDir }: Pick<InstallTarget, "packagesDir">): string =>
  `${packagesDir}/${packageName}`;

/**
 * The framework is a library: the package goes into the environment that agents import from. Its version and that folder are
 * what the interpreter itself says.
 */
export const setup: RuntimeSetup = {
  program: "python3",
  libraryArguments: [
    "-c",
    "import sysconfig; from importlib.metadata import version; print(version('agent-framework-core')); print(sysconfig.get_paths()['purelib'])",
  ],
  forms: ["plugin"],
  refuse: (version) =>
    isAtLeast(version, firstRecorded)
      ? null
      : `agent-framework-core ${version} was never recorded: whether its function middleware stops a call is not known; update to ${firstRecorded} or later`,
  edits: (target) =>
    toPluginEdits(target, packageFolder(target), {
      ...readPluginFiles(import.meta.url, ["__init__.py"]),
      ...readGateClient("gate_client.py"),
    }),
  ownFolders: (target) => [packageFolder(target)],
  // Whether a program gives the middleware to its agent stands in its own code: no file here tells.
  findOpenings: () => [],
  nextSteps: [
    "each agent has to be given it, last: from policy_hook_fabric import create_policy_middleware",
    '  Agent(..., middleware=[*others, *create_policy_middleware(tools={"run_shell": "shell.run"})])',
  ],
};
