import { z } from "zod";
import type { Observation } from "../../schemas/adapter.ts";
import type { LifecycleSignal } from "../../schemas/generated/types.ts";
import type { HookRule, Scene } from "./hook-table.ts";
import { hookRule, observe, toObservation } from "./hook-table.ts";
import { toTextPreview } from "./masked-preview.ts";
import { identifierField } from "./payload-fields.ts";

const detailMaxChars = 256;
const pathMaxChars = 4096;

/** A signal of a runtime, kept for the record. */
export const toSignal = (
  signal: LifecycleSignal,
  detail: string | null,
  path: string | null,
  scene: Scene,
): Observation =>
  toObservation(
    "agent.lifecycle.observed",
    {
      signal,
      detail: detail === null ? null : toTextPreview(detail, detailMaxChars),
      path: path === null ? null : toTextPreview(path, pathMaxChars),
    },
    scene,
  );

/** What a plugin of ours tells of itself, once `plugin` is opened. */
export const pluginFields = {
  "plugin/version": z.string(),
  "plugin/configuration": z.string(),
  "plugin/files": z.string(),
  "plugin/lost": z.number().int().nonnegative(),
  "plugin/problem": z.string(),
};
type PluginWord = { readonly [K in keyof typeof pluginFields]?: z.output<(typeof pluginFields)[K]> };

/** The plugin's own word that it runs here: its version, and the digests of its configuration and of its files. */
export const toPluginText = (plugin: PluginWord): string =>
  [
    `plugin ${plugin["plugin/version"] ?? "unknown"}`,
    `hooks ${plugin["plugin/configuration"] ?? "unknown"}`,
    `files ${plugin["plugin/files"] ?? "unknown"}`,
    ...((plugin["plugin/lost"] ?? 0) > 0 ? [`lost ${String(plugin["plugin/lost"])}`] : []),
    ...(plugin["plugin/problem"] === undefined ? [] : [plugin["plugin/problem"]]),
  ].join(", ");

/** The heartbeat of a plugin in the running process; `hook`, `place` and `plugin` are its fields. */
export const loadedRule: HookRule = hookRule(
  "hooks_loaded",
  false,
  {
    bearing: { hook: z.string(), "place/instance": identifierField },
    metadata: { ...pluginFields, "place/directory": z.string() },
    dropped: ["event", "ctx", "payload"],
  },
  ({ metadata }, scene) =>
    observe(toSignal("hooks_loaded", toPluginText(metadata), metadata["place/directory"] ?? null, scene)),
);

/** A hook whose record is a signal. Paths are of the opened payload; `left` are fields that no event needs. */
export function signalRule(
  phase: string,
  kind: LifecycleSignal,
  where: {
    readonly session: string;
    readonly detail?: readonly string[];
    readonly path?: string;
    readonly left?: readonly string[];
    readonly identity?: z.ZodRawShape;
  },
): HookRule {
  const { session, detail = [], path, left = [], identity = {} } = where;
  const read = [...detail, ...(path === undefined ? [] : [path])];
  return hookRule(
    phase,
    false,
    {
      bearing: { ...identity, [session]: identifierField },
      metadata: Object.fromEntries(read.map((key) => [key, z.string()])),
      dropped: left,
    },
    ({ metadata }, scene) => {
      const parts = detail.flatMap((key) => metadata[key] ?? []);
      const place = path === undefined ? undefined : metadata[path];
      return observe(toSignal(kind, parts.length === 0 ? null : parts.join(": "), place ?? null, scene));
    },
  );
}
