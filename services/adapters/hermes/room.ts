import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { drive } from "./drive.ts";
import { hermes } from "./hermes.ts";
import { setup } from "./setup.ts";

/** Hermes, whole. */
export const room: RuntimeRoom = {
  adapter: hermes,
  capabilities,
  setup,
  drive,
  limits: {
    hook_crash: {
      why: "a plugin that is not enabled, or whose register raises, is skipped with a line in a log at most",
      tried: "register that raises, and a plugin that is not named under plugins.enabled: the tool ran",
      mitigation:
        "the plugin's hooks catch everything and say no; it says that it is loaded, and a session without that word is flagged",
    },
  },
  bypasses: [],
};
