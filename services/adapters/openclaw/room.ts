import type { RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { drive } from "./drive.ts";
import { openclaw } from "./openclaw.ts";
import { setup } from "./setup.ts";

/** OpenClaw, whole. */
export const room: RuntimeRoom = {
  adapter: openclaw,
  capabilities,
  setup,
  drive,
  limits: {
    subagent: {
      why: "child agents need a client of the gateway; the embedded agent that the suite runs has none",
      tried: "sessions_spawn in the embedded agent: the client refuses it",
      mitigation: "the child's own calls pass the same hook, in a session of their own",
    },
  },
  bypasses: [],
};
