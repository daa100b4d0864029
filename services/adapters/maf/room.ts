import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { bypasses, limits } from "./bypasses.ts";
import { capabilities } from "./capabilities.ts";
import { drive } from "./drive.ts";
import { maf } from "./maf.ts";
import { setup } from "./setup.ts";

/** Microsoft Agent Framework (Python), whole. */
export const room: RuntimeRoom = {
  adapter: maf,
  capabilities,
  setup,
  drive,
  limits,
  bypasses,
};
