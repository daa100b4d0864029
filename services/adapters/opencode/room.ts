import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { drive } from "./drive.ts";
import { opencode } from "./opencode.ts";
import { setup } from "./setup.ts";

/** OpenCode, whole. */
export const room: RuntimeRoom = {
  adapter: opencode,
  capabilities,
  setup,
  drive,
  limits: {
    hook_crash: {
      why: "a plugin that is not found, does not parse or throws while it loads is skipped without a word",
      tried:
        "a plugin file with a syntax error, and one that throws in its factory: the tool ran, exit code 0",
      mitigation:
        "the plugin throws nowhere while it loads, says that it is loaded, and a session without that word is flagged",
    },
  },
  bypasses: [],
};
