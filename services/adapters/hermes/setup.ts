import { parse, parseDocument } from "yaml";
import { Fault } from "../../../schemas/faults.ts";
import { isAtLeast } from "../../platform/client-version.ts";
import { isJsonObject } from "../../platform/payload-fields.ts";
import { readGateClient, readPluginFiles, toPluginEdits } from "../../platform/plugin-files.ts";
import type { FileEdit, InstallTarget, RuntimeSetup } from "../../platform/runtime-room.ts";

const pluginName = "policy-hook-fabric";
/** What was recorded; the plugin leans on what an older client may not have. */
const firstRecorded = "0.19.0";

const pluginFolder = (target: InstallTarget): string => `${target.home}/.hermes/plugins/${pluginName}`;
const configPath = (target: InstallTarget): string => `${target.home}/.hermes/config.yaml`;

function read(text: string | null, path: string): unknown {
  try {
    return text === null ? {} : (parse(text) as unknown);
  } catch (error) {
    throw new Fault("CONFIG_INVALID", `\`${path}\` is not YAML, so its client ignores it; mend it first`, {
      cause: error,
    });
  }
}
/** The names under `plugins.enabled`. */
function toEnabled(text: string | null, path: string): readonly unknown[] {
  const settings = read(text, path);
  const plugins = isJsonObject(settings) ? settings["plugins"] : undefined;
  const enabled = isJsonObject(plugins) ? plugins["enabled"] : undefined;
  return Array.isArray(enabled) ? (enabled as unknown[]) : [];
}
/** Edits that keep the comments and the order of a person's file. */
function edit(text: string | null, enabled: readonly unknown[]): string {
  const document = parseDocument(text ?? "");
  if (enabled.length > 0) document.setIn(["plugins", "enabled"], enabled);
  else document.deleteIn(["plugins", "enabled"]);
  const plugins: unknown = document.toJS();
  const left = isJsonObject(plugins) ? plugins["plugins"] : undefined;
  if (isJsonObject(left) && Object.keys(left).length === 0) document.delete("plugins");
  return document.toString();
}

function edits(target: InstallTarget): readonly FileEdit[] {
  const path = configPath(target);
  const others = (text: string | null): readonly unknown[] =>
    toEnabled(text, path).filter((one) => one !== pluginName);
  return [
    ...toPluginEdits(target, pluginFolder(target), {
      ...readPluginFiles(import.meta.url, ["__init__.py", "plugin.yaml"]),
      ...readGateClient("gate_client.py"),
    }),
    {
      path,
      toInstalled: (before) => edit(before, [...others(before), pluginName]),
      toRemoved(text) {
        if (!toEnabled(text, path).includes(pluginName)) return text;
        const left = edit(text, others(text));
        const settings: unknown = parse(left);
        return settings === null || (isJsonObject(settings) && Object.keys(settings).length === 0)
          ? null
          : left;
      },
    },
  ];
}

function findOpenings(textOf: (path: string) => string | null, target: InstallTarget): readonly string[] {
  const path = configPath(target);
  const text = textOf(path);
  const openings: string[] = [];
  if (!toEnabled(text, path).includes(pluginName))
    openings.push(`\`plugins.enabled\` in ${path} does not name ${pluginName}: tools run unguarded`);
  const settings = read(text, path);
  const approvals = isJsonObject(settings) ? settings["approvals"] : undefined;
  if (isJsonObject(approvals) && ["off", "yolo"].includes(String(approvals["mode"])))
    openings.push(
      `\`approvals.mode\` in ${path} answers the client's own questions with yes; the fabric's no still holds`,
    );
  return openings;
}

/** Where this client's plugin lives. Shell hooks are not installed: they cannot ask, and each of their failures is a yes. */
export const setup: RuntimeSetup = {
  program: "hermes",
  forms: ["plugin"],
  refuse: (version) =>
    isAtLeast(version, firstRecorded)
      ? null
      : `Hermes ${version} was never recorded: whether a plugin's block stops a tool is not known; update to ${firstRecorded} or later`,
  edits,
  ownFolders: (target) => [pluginFolder(target)],
  findOpenings,
};
