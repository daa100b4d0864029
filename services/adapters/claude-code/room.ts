import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { claudeCode } from "./claude-code.ts";
import { drive } from "./drive.ts";
import { records } from "./records.ts";
import { setup } from "./setup.ts";
import { spoiltSettings, spoiltSettingsLimit } from "./spoilt-settings.ts";

/** Claude Code, whole. */
export const room: RuntimeRoom = {
  adapter: claudeCode,
  capabilities,
  setup,
  drive,
  records,
  limits: { [spoiltSettings.behaviour]: spoiltSettingsLimit },
  bypasses: [spoiltSettings],
};
