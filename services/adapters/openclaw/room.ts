import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { drive } from "./drive.ts";
import { openclaw } from "./openclaw.ts";
import { records } from "./records.ts";
import { setup } from "./setup.ts";
import { unloadedPlugin, unloadedPluginLimit } from "./unloaded-plugin.ts";

/** OpenClaw, whole. */
export const room: RuntimeRoom = {
  adapter: openclaw,
  capabilities,
  setup,
  drive,
  records,
  limits: { [unloadedPlugin.behaviour]: unloadedPluginLimit },
  bypasses: [unloadedPlugin],
};
