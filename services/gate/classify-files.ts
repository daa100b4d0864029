import type { InputParts } from "./classify-input.ts";
import { climbsMax, isFollowedInPart, resolvePath, toClimb, toExcess, toPathLike } from "./classify-paths.ts";
import { nothingRead, toDistinct } from "./classify-reading.ts";
import type { Reading } from "./classify-reading.ts";
import type { AskedCall, TouchedPath } from "./classified.ts";
import type { ToolEntry } from "./policy/policy.ts";
import { toDeleteIntents, toReadIntents, toWriteIntents } from "./shell/path-intents.ts";

/** What a tool touches that names its files in fields; one of another's server wherever it names them. */
export function readFiles(
  request: AskedCall,
  entry: ToolEntry,
  spelled: readonly { readonly path: string; readonly isDelete: boolean }[],
  parts: InputParts,
  home: string | undefined,
): Reading {
  const { working_directory: workingDirectory } = request;
  const liked = request.tool.startsWith("mcp.") ? toPathLikes(parts) : [];
  const all = [...spelled, ...liked.map((path) => ({ path, isDelete: false }))];
  const excess = toExcess(
    all.map(({ path }) => path),
    workingDirectory,
  );
  if (excess !== null) return { ...nothingRead, excess };
  const climbs = all.flatMap(({ path }) => toClimb(workingDirectory, path) ?? []);
  const resolve = (path: string): string => resolvePath(workingDirectory, home, path);
  const modes = toModes(entry, request.tool);
  const touched = all.flatMap(({ path }) =>
    modes.map((mode): TouchedPath => ({ path: resolve(path), mode })),
  );
  const deleted = spelled.flatMap(({ path, isDelete }) => (isDelete ? [resolve(path)] : []));
  const paths = touched.map(({ path }) => path);
  return {
    ...nothingRead,
    named: paths,
    touched: toDistinct(touched),
    climbs: climbs.slice(0, climbsMax),
    signals: [
      ...(isFollowedInPart(touched, [], climbs) ? ["path.unresolved", "path.unresolved.read"] : []),
      ...(modes.includes("read") ? toReadIntents(paths) : []),
      ...(modes.includes("write") ? toWriteIntents(paths) : []),
      ...(deleted.length > 0 ? ["file.delete", ...toDeleteIntents(deleted)] : []),
    ],
  };
}

/** A tool of somebody else may read what it writes. */
function toModes({ effect }: ToolEntry, tool: string): readonly TouchedPath["mode"][] {
  if (effect === "none" || effect === "read" || effect === "network") return ["read"];
  return tool.startsWith("mcp.") ? ["read", "write"] : ["write"];
}

/** Texts of another's tool that name files by their form or their field. */
function toPathLikes({ texts }: InputParts): string[] {
  return [...new Set(texts.flatMap(({ field, text }) => toPathLike(field, text) ?? []))];
}
