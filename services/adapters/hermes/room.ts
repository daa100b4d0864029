import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { programBypasses, programLimits } from "./code-programs.ts";
import { drive } from "./drive.ts";
import { hermes } from "./hermes.ts";
import { records } from "./records.ts";
import { setup } from "./setup.ts";
import { unnamedPlugin, unnamedPluginLimit } from "./unnamed-plugin.ts";

/** Hermes, whole. */
export const room: RuntimeRoom = {
  adapter: hermes,
  capabilities,
  setup,
  drive,
  records,
  limits: { ...programLimits, [unnamedPlugin.behaviour]: unnamedPluginLimit },
  bypasses: [...programBypasses, unnamedPlugin],
};
