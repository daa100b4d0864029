import { parseSettings } from "../../platform/hook-settings.ts";
import { isJsonObject } from "../../platform/payload-fields.ts";
import { readGateClient, readPluginFiles, toPluginEdits } from "../../platform/plugin-files.ts";
import type { FileEdit, InstallTarget, RuntimeSetup } from "../../platform/runtime-room.ts";

const pluginId = "policy-hook-fabric";
const hookGraceMs = 5_000;
const hookTimeoutMaxMs = 600_000;
type Settings = Readonly<Record<string, unknown>>;

const pluginFolder = (target: InstallTarget): string => `${target.fabricDir}/plugin`;
const configPath = (target: InstallTarget): string => `${target.home}/.openclaw/openclaw.json`;
const objectAt = (settings: Settings, key: string): Settings =>
  isJsonObject(settings[key]) ? settings[key] : {};
const listAt = (settings: Settings, key: string): readonly unknown[] =>
  Array.isArray(settings[key]) ? (settings[key] as unknown[]) : [];
const print = (settings: object): string => `${JSON.stringify(settings, null, 2)}\n`;
/** Without what is empty, so that taking out leaves what was there before. */
const filled = (settings: Settings): Settings =>
  Object.fromEntries(
    Object.entries(settings).filter(
      ([, value]) =>
        !(
          (isJsonObject(value) && Object.keys(value).length === 0) ||
          (Array.isArray(value) && value.length === 0)
        ),
    ),
  );

/** Above the plugin's own deadline, and below what the client takes; at its end the client blocks. */
const toTimeouts = ({ approvalWaitMs, gatingDeadlineMs }: InstallTarget): object =>
  approvalWaitMs === 0
    ? {}
    : {
        timeouts: {
          before_tool_call: Math.min(approvalWaitMs + 2 * gatingDeadlineMs + hookGraceMs, hookTimeoutMaxMs),
        },
      };

function withPlugin(settings: Settings, target: InstallTarget): Settings {
  const folder = pluginFolder(target);
  const plugins = objectAt(settings, "plugins");
  const load = objectAt(plugins, "load");
  const entries = objectAt(plugins, "entries");
  return {
    ...settings,
    plugins: {
      ...plugins,
      enabled: true,
      // An absent list allows all; one that is there has to name ours.
      ...(plugins["allow"] === undefined
        ? {}
        : { allow: [...listAt(plugins, "allow").filter((one) => one !== pluginId), pluginId] }),
      load: { ...load, paths: [...listAt(load, "paths").filter((one) => one !== folder), folder] },
      entries: {
        ...entries,
        [pluginId]: { enabled: true, hooks: { allowConversationAccess: true, ...toTimeouts(target) } },
      },
    },
  };
}
function withoutPlugin(settings: Settings, folder: string): Settings {
  const plugins = objectAt(settings, "plugins");
  const load = objectAt(plugins, "load");
  const { [pluginId]: _ours, ...entries } = objectAt(plugins, "entries");
  const { enabled, ...left } = filled({
    ...plugins,
    allow: listAt(plugins, "allow").filter((one) => one !== pluginId),
    load: filled({ ...load, paths: listAt(load, "paths").filter((one) => one !== folder) }),
    entries,
  });
  const { plugins: _before, ...others } = settings;
  return Object.keys(left).length === 0 ? others : { ...others, plugins: { enabled, ...left } };
}

function edits(target: InstallTarget): readonly FileEdit[] {
  const path = configPath(target);
  const folder = pluginFolder(target);
  return [
    ...toPluginEdits(target, folder, {
      ...readPluginFiles(import.meta.url, ["index.mjs", "openclaw.plugin.json", "package.json"]),
      ...readGateClient("gate-client.mjs"),
    }),
    {
      path,
      toInstalled: (before) => print(withPlugin(parseSettings(before, path), target)),
      toRemoved(text) {
        const left = withoutPlugin(parseSettings(text, path), folder);
        return Object.keys(left).length === 0 ? null : print(left);
      },
    },
  ];
}

function findOpenings(textOf: (path: string) => string | null, target: InstallTarget): readonly string[] {
  const path = configPath(target);
  const plugins = objectAt(parseSettings(textOf(path), path), "plugins");
  const entry = objectAt(objectAt(plugins, "entries"), pluginId);
  const openings: string[] = [];
  if (!listAt(objectAt(plugins, "load"), "paths").includes(pluginFolder(target)))
    openings.push(`\`plugins.load.paths\` in ${path} does not name the fabric's plugin: tools run unguarded`);
  if (plugins["enabled"] === false || entry["enabled"] === false)
    openings.push(`the fabric's plugin is switched off in ${path}: tools run unguarded`);
  if (plugins["allow"] !== undefined && !listAt(plugins, "allow").includes(pluginId))
    openings.push(`\`plugins.allow\` in ${path} does not name ${pluginId}: it is not loaded`);
  return openings;
}

/** Where this client's plugin lives. */
export const setup: RuntimeSetup = {
  program: "openclaw",
  forms: ["plugin"],
  refuse: (version) =>
    Number(/^\d+/.exec(version)?.[0] ?? "0") >= 2026
      ? null
      : `OpenClaw ${version} was never recorded: whether its typed hooks stop a tool is not known; update it`,
  edits,
  findOpenings,
};
