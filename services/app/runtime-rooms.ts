import { room as claudeCode } from "../adapters/claude-code/room.ts";
import { room as codex } from "../adapters/codex/room.ts";
import { room as hermes } from "../adapters/hermes/room.ts";
import { room as openclaw } from "../adapters/openclaw/room.ts";
import { room as opencode } from "../adapters/opencode/room.ts";
import type { RuntimeRoom } from "../platform/runtime-room.ts";

/** Runtimes that can be installed, by their name. */
export const runtimeRooms: ReadonlyMap<string, RuntimeRoom> = new Map(
  [claudeCode, codex, opencode, openclaw, hermes].map((room) => [room.adapter.runtime, room]),
);
