import { pathToFileURL } from "node:url";
import { isAtLeast } from "../../platform/client-version.ts";
import { parseSettings } from "../../platform/hook-settings.ts";
import { readGateClient, readPluginFiles, toPluginEdits } from "../../platform/plugin-files.ts";
import type { FileEdit, InstallTarget, RuntimeSetup } from "../../platform/runtime-room.ts";

/** What was recorded; how an older client treats an exception of a plugin was not. */
const firstRecorded = "1.18.0";

const pluginFolder = (target: InstallTarget): string => `${target.fabricDir}/plugin`;
const configPath = (target: InstallTarget): string => `${target.home}/.config/opencode/opencode.json`;
const entryOf = (target: InstallTarget): string => pathToFileURL(`${pluginFolder(target)}/index.mjs`).href;

const listOf = (settings: Readonly<Record<string, unknown>>): readonly unknown[] =>
  Array.isArray(settings["plugin"]) ? (settings["plugin"] as unknown[]) : [];
const print = (settings: object): string => `${JSON.stringify(settings, null, 2)}\n`;

function edits(target: InstallTarget): readonly FileEdit[] {
  const path = configPath(target);
  const entry = entryOf(target);
  const others = (settings: Readonly<Record<string, unknown>>): readonly unknown[] =>
    listOf(settings).filter((one) => one !== entry);
  return [
    ...toPluginEdits(
      target,
      pluginFolder(target),
      { ...readPluginFiles(import.meta.url, ["index.mjs"]), ...readGateClient("gate-client.mjs") },
      // A person's own commands pass no hook in front of tools, and the one that they do pass does not name them.
      { user_shell: "refuse" },
    ),
    {
      path,
      toInstalled(before) {
        const settings = parseSettings(before, path);
        // Last: what an earlier plugin makes of the input is what is judged.
        return print({ ...settings, plugin: [...others(settings), entry] });
      },
      toRemoved(text) {
        const { plugin: _plugin, ...rest } = parseSettings(text, path);
        const left = others(parseSettings(text, path));
        if (left.length > 0) return print({ ...rest, plugin: left });
        return Object.keys(rest).length === 0 ? null : print(rest);
      },
    },
  ];
}

function findOpenings(textOf: (path: string) => string | null, target: InstallTarget): readonly string[] {
  const path = configPath(target);
  const plugins = listOf(parseSettings(textOf(path), path));
  const at = plugins.indexOf(entryOf(target));
  const openings: string[] = [];
  if (at === -1)
    openings.push(`\`plugin\` in ${path} does not name the fabric's plugin: tools run unguarded`);
  else if (at < plugins.length - 1)
    openings.push(`a plugin after the fabric's in ${path} may change what was judged; put ours last`);
  const settings = textOf(`${pluginFolder(target)}/fabric.json`);
  if (settings !== null && parseSettings(settings, "fabric.json")["user_shell"] !== "refuse")
    openings.push(
      `\`user_shell\` in ${pluginFolder(target)}/fabric.json is not \`refuse\`: what is typed after \`!\`, or posted to a session's shell, runs unseen`,
    );
  if (textOf(`${target.home}/.config/opencode/opencode.jsonc`) !== null)
    openings.push(
      `${target.home}/.config/opencode/opencode.jsonc is read as well; see that it names no other plugin`,
    );
  return openings;
}

/** Where this client's plugin lives. A version that was not recorded may go on when a plugin throws. */
export const setup: RuntimeSetup = {
  program: "opencode",
  forms: ["plugin"],
  refuse: (version) =>
    isAtLeast(version, firstRecorded)
      ? null
      : `OpenCode ${version} was never recorded: whether an exception of a plugin stops its tools is not known; update to ${firstRecorded} or later`,
  edits,
  findOpenings,
};
