import { capabilities } from "../../services/adapters/maf/capabilities.ts";
import { bypasses, limits } from "../../services/adapters/maf/bypasses.ts";
import { drive, packageFolder } from "../../services/adapters/maf/drive.ts";
import { maf } from "../../services/adapters/maf/maf.ts";
import { readGateClient, readPluginFiles, toPluginEdits } from "../../services/platform/plugin-files.ts";
import type { RuntimeRoom } from "../../services/platform/runtime-room.ts";

const roomUrl = new URL("../../services/adapters/maf/maf.ts", import.meta.url).href;

/** A framework that has no installation of its own yet: the package is laid where the agent's program imports it. */
export const libraryRoom: RuntimeRoom = {
  adapter: maf,
  capabilities,
  drive,
  limits,
  bypasses,
  setup: {
    program: "python3",
    forms: ["plugin"],
    refuse: () => null,
    edits: (target) =>
      toPluginEdits(target, packageFolder(target.home), {
        ...readPluginFiles(roomUrl, ["__init__.py"]),
        ...readGateClient("gate_client.py"),
      }),
    findOpenings: () => [],
  },
};
