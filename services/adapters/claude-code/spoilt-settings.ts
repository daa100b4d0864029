import { readFile, writeFile } from "node:fs/promises";
import { parseSettings } from "../../platform/hook-settings.ts";
import type { Bypass, Limit } from "../../platform/runtime-room.ts";
import { drive } from "./drive.ts";

const leaves = "unguarded.txt";
const pathIn = (home: string): string => `${home}/.claude/settings.json`;
const strayEvent = "Stop";
const strayEntry = { hooks: [{ type: "a kind that this client does not know" }] };

const hooksOf = (text: string): Record<string, unknown[]> =>
  parseSettings(text, "settings.json")["hooks"] as Record<string, unknown[]>;

/** One entry that the client does not understand, in the same file as ours: it drops the whole file in silence. */
export const spoiltSettings: Bypass = {
  behaviour: "bypass_not_loaded",
  turns: [drive.tools.shell(`echo hi > ${leaves}`)],
  leaves,
  damage: {
    pathOf: ({ home }) => pathIn(home),
    toDamaged(text) {
      const hooks = hooksOf(text);
      return JSON.stringify({
        ...parseSettings(text, "settings.json"),
        hooks: { ...hooks, [strayEvent]: [...(hooks[strayEvent] ?? []), strayEntry] },
      });
    },
  },
};

/** The same hooks in a second file, which holds nothing that the client does not understand. */
async function addSecondFile(home: string): Promise<string> {
  const settings = await readFile(pathIn(home), "utf8");
  const hooks = hooksOf(settings);
  const path = `${home}/second-settings.json`;
  const clean = { hooks: { ...hooks, [strayEvent]: (hooks[strayEvent] ?? []).slice(0, -1) } };
  await writeFile(path, JSON.stringify(clean), { mode: 0o600 });
  return path;
}

export const spoiltSettingsLimit: Limit = {
  why: "one entry that the client does not understand, whoever wrote it, disables its whole settings file without a word",
  tried: "a hook of an unknown type beside ours in ~/.claude/settings.json",
  mitigation:
    "`fabric doctor` names such an entry, and a session without gate traffic is flagged; managed settings are the client's own answer, and were not measured",
  attempt: {
    setting: "the same hooks in a second file by `--settings FILE`",
    helps: false,
    change: async (start, { home }) => ({
      ...start,
      argv: [...start.argv, "--settings", await addSecondFile(home)],
    }),
  },
};
