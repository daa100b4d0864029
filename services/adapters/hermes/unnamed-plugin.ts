import { readFile, writeFile } from "node:fs/promises";
import { parse, stringify } from "yaml";
import { isJsonObject } from "../../platform/payload-fields.ts";
import type { Bypass, Limit } from "../../platform/runtime-room.ts";
import { drive } from "./drive.ts";

const leaves = "unguarded.txt";
const settingsOf = (text: string): Record<string, unknown> => {
  const parsed: unknown = parse(text);
  return isJsonObject(parsed) ? { ...parsed } : {};
};

/** The plugin lies in its folder and is not named among those that are on. */
export const unnamedPlugin: Bypass = {
  behaviour: "bypass_not_loaded",
  turns: [drive.tools.shell(`echo hi > ${leaves}`)],
  leaves,
  damage: {
    pathOf: ({ home }) => `${home}/.hermes/config.yaml`,
    toDamaged: (text) => stringify({ ...settingsOf(text), plugins: { enabled: [] } }),
  },
};

export const unnamedPluginLimit: Limit = {
  why: "a plugin that is not enabled, or whose register raises, is skipped with a line in a log at most",
  tried: "`plugins.enabled` without the fabric's plugin",
  mitigation:
    "the plugin's hooks catch everything and say no; it says that it is loaded, a session without that word is flagged, and `fabric doctor` reads `plugins.enabled`",
  attempt: {
    setting: "`approvals.mode: manual`, the client's own guard: it asks about dangerous commands alone",
    helps: false,
    async change(start, { home }) {
      const path = `${home}/.hermes/config.yaml`;
      const settings = settingsOf(await readFile(path, "utf8"));
      await writeFile(path, stringify({ ...settings, approvals: { mode: "manual", timeout: 2 } }));
      return start;
    },
  },
};
