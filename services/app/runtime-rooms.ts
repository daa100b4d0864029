import { room as claudeCode } from "../adapters/claude-code/room.ts";
import { guide as appServer } from "../adapters/codex/app-server/room.ts";
import { room as codex } from "../adapters/codex/room.ts";
import { room as hermes } from "../adapters/hermes/room.ts";
import { room as maf } from "../adapters/maf/room.ts";
import { room as openclaw } from "../adapters/openclaw/room.ts";
import { room as opencode } from "../adapters/opencode/room.ts";
import { guide as sdk } from "../adapters/sdk/room.ts";
import type { RuntimeGuide, RuntimeRoom } from "../platform/runtime-room.ts";

/** Runtimes that can be installed, by their name. */
export const runtimeRooms: ReadonlyMap<string, RuntimeRoom> = new Map(
  [claudeCode, codex, opencode, openclaw, hermes, maf].map((room) => [room.adapter.runtime, room]),
);

/** Runtimes that are configured and not installed, by their name. */
export const runtimeGuides: ReadonlyMap<string, RuntimeGuide> = new Map(
  [appServer, sdk].map((guide) => [guide.adapter.runtime, guide]),
);
