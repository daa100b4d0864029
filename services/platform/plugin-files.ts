import { readFileSync } from "node:fs";
import type { FileEdit, InstallTarget } from "./runtime-room.ts";

/** Files of a plugin that runs inside a client: their names in its folder, and their texts. */
export type PluginFiles = Readonly<Record<string, string>>;

/** Reads the files of a room's plugin, which lie in `plugin/` beside its code. */
export const readPluginFiles = (roomUrl: string, names: readonly string[]): PluginFiles =>
  Object.fromEntries(
    names.map((name) => [name, readFileSync(new URL(`plugin/${name}`, roomUrl), "utf8")] as const),
  );

/** Reads a part that plugins of several runtimes have in common: how they ask the gate. */
export const readGateClient = (name: "gate-client.mjs" | "gate_client.py"): PluginFiles => ({
  [name]: readFileSync(new URL(`plugin-kit/${name}`, import.meta.url), "utf8"),
});

/** Where a plugin's reports wait while the gate is away. */
const spoolOf = ({ fabricDir }: InstallTarget): string => `${fabricDir}/spool/reports.jsonl`;

/** Edits that lay a plugin's files into a folder of ours, with the settings that it reads there (`fabric.json`). */
export function toPluginEdits(
  target: InstallTarget,
  folder: string,
  files: PluginFiles,
  more: Readonly<Record<string, unknown>> = {},
): readonly FileEdit[] {
  const settings = {
    gate_url: target.gateUrl,
    token_file: target.tokenFile,
    configuration_hash: target.configurationHash,
    deadline_ms: target.gatingDeadlineMs,
    observe_deadline_ms: target.observingDeadlineMs,
    spool_file: spoolOf(target),
    ...(target.approvalWaitMs > 0 ? { approval_wait_ms: target.approvalWaitMs } : {}),
    ...more,
  };
  const all = { ...files, "fabric.json": `${JSON.stringify(settings, null, 2)}\n` };
  return Object.entries(all).map(([name, text]) => ({
    path: `${folder}/${name}`,
    toInstalled: () => text,
    // Every file of this folder is ours.
    toRemoved: () => null,
  }));
}
