import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { drive } from "./drive.ts";
import { opencode } from "./opencode.ts";
import { records } from "./records.ts";
import { setup } from "./setup.ts";
import { unloadedPlugin, unloadedPluginLimit } from "./unloaded-plugin.ts";
import { userShell } from "./user-shell.ts";

/** OpenCode, whole. */
export const room: RuntimeRoom = {
  adapter: opencode,
  capabilities,
  setup,
  drive,
  records,
  limits: { [unloadedPlugin.behaviour]: unloadedPluginLimit },
  bypasses: [userShell, unloadedPlugin],
};
