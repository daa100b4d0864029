import { readFile, writeFile } from "node:fs/promises";
import { parseSettings } from "../../platform/hook-settings.ts";
import type { Bypass, Limit } from "../../platform/runtime-room.ts";
import { drive } from "./drive.ts";

const leaves = "unguarded.txt";

/** A plugin that does not parse: the client goes on as if there were none. */
export const unloadedPlugin: Bypass = {
  behaviour: "bypass_not_loaded",
  turns: [drive.tools.shell(`echo hi > ${leaves}`)],
  leaves,
  damage: {
    pathOf: ({ fabricDir }) => `${fabricDir}/plugin/index.mjs`,
    toDamaged: () => "this does not parse (\n",
  },
};

export const unloadedPluginLimit: Limit = {
  why: "a plugin that is not found, does not parse or throws while it loads is skipped without a word, exit code 0",
  tried: "a plugin file with a syntax error",
  mitigation:
    "the plugin throws nowhere while it loads and says that it is loaded; a session without that word is flagged, and `fabric doctor` proves it; the client's own permissions as a second lock",
  attempt: {
    setting: '`"permission": { "bash": "ask" }`: without a person `run` then refuses every command',
    helps: true,
    async change(start) {
      const path = start.env["OPENCODE_CONFIG"] ?? "";
      const settings = parseSettings(await readFile(path, "utf8"), path);
      await writeFile(path, JSON.stringify({ ...settings, permission: { bash: "ask" } }));
      return start;
    },
  },
};
