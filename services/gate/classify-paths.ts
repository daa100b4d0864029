import { resolvePath as resolveNamedPath } from "../platform/adapter-kit.ts";
import type { Climb } from "./shell/parsed-command.ts";
import { resolvePath as cleanPath } from "./shell/path-words.ts";

/** Most files that one call may name: each is resolved, and each rule looks at each of them. */
export const namedPathsMax = 1_000;
/** Longest path, and longest working folder; what Linux takes. */
export const pathMaxChars = 4_096;
/** Most characters of all paths of a call together, as resolved: a relative one brings the working folder with it. */
const allPathsMaxChars = 262_144;

/** A file that a patch names in a header. */
export interface PatchPath {
  readonly path: string;
  readonly isDelete: boolean;
}

/** The files that patches name, of the `*** Update File:` kind and of unified diffs; one more than may be named. */
export function toPatchPaths(patches: readonly string[]): PatchPath[] {
  const paths = new Map<string, PatchPath>();
  const add = (spelled: string, isDelete: boolean): void => {
    const path = spelled.trim();
    if (path === "" || paths.size > namedPathsMax) return;
    paths.set(path, { path, isDelete: isDelete || paths.get(path)?.isDelete === true });
  };
  for (const patch of patches) {
    const headers = patch.matchAll(
      /^[ \t]*\*\*\* (Add File|Update File|Delete File|Move to):[ \t]*([^\r\n]*)$/gm,
    );
    for (const [, verb, spelled = ""] of headers) add(spelled, verb === "Delete File");
    for (const { before, after } of toDiffNames(patch)) {
      if (before !== null) add(before, after === null);
      if (after !== null) add(after, false);
    }
  }
  return [...paths.values()];
}

type DiffNames = { readonly before: string | null; readonly after: string | null };

/** Names of a unified diff: `--- a/x` with `+++ b/y` below, and what git says of renames and of files without lines. */
function toDiffNames(patch: string): DiffNames[] {
  const names: DiffNames[] = [];
  for (const [, before = "", after = ""] of patch.matchAll(/^--- ([^\r\n]*)\r?\n\+\+\+ ([^\r\n]*)$/gm)) {
    const old = toDiffName(before, "a/");
    const made = toDiffName(after, "b/");
    names.push({ before: old, after: made });
    // Who applies it with -p0 takes the names as they stand.
    const bareOld = toDiffName(before, "");
    const bareMade = toDiffName(after, "");
    if (bareOld !== old || bareMade !== made) names.push({ before: bareOld, after: bareMade });
  }
  for (const [, name = ""] of patch.matchAll(/^(?:rename|copy) (?:from|to) ([^\r\n]*)$/gm))
    names.push({ before: toDiffName(name, ""), after: toDiffName(name, "") });
  for (const [, line = ""] of patch.matchAll(/^diff --git ([^\r\n]*)$/gm)) {
    const [, before = "", after = ""] = /^(?:"?a\/)(.*?)"? "?b\/(.*?)"?$/.exec(line) ?? [];
    if (before !== "" && after !== "") names.push({ before, after });
  }
  return names;
}

function toDiffName(text: string, prefix: string): string | null {
  const name = text
    .replace(/\t.*$/s, "")
    .trim()
    .replace(/^"(.*)"$/, "$1");
  if (name === "/dev/null" || name === "") return null;
  return prefix !== "" && name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/** A path as a tool would resolve it; a leading `~` is the home, where that is known. */
export function resolvePath(
  workingDirectory: string | undefined,
  home: string | undefined,
  path: string,
): string {
  if (path === "~" || path.startsWith("~/"))
    return home === undefined ? cleanPath("/", path) : cleanPath("/", `${home}/${path.slice(1)}`);
  return toFileName(resolveNamedPath(workingDirectory, path));
}

/** Most spellings of one call whose way over links is looked at, and most paths of all kinds. */
export const climbsMax = 64;
export const followedMax = 128;

/** Whether links among what a call names are not all followed: then nobody knows what it touches. */
export function isFollowedInPart(
  touched: readonly { readonly path: string }[],
  operands: readonly string[],
  climbs: readonly Climb[],
): boolean {
  const paths = new Set([...touched.map(({ path }) => path), ...operands]);
  return climbs.length > climbsMax || paths.size + climbs.length > followedMax;
}

/** A path that climbs out of a name, as it is spelled: where the name is a link it leads elsewhere. Undefined: it does not. */
export function toClimb(workingDirectory: string | undefined, path: string): Climb | undefined {
  if (path.length > pathMaxChars || isWindowsPath(path) || path.startsWith("~")) return undefined;
  if (!path.includes("/..") || !/(?:^|\/)(?!\.\.?\/)[^/]+\/+\.\.(?:\/|$)/.test(path)) return undefined;
  const spelled = path.startsWith("/") ? path : `${workingDirectory ?? ""}/${path}`;
  return spelled.startsWith("/") ? { path: cleanPath("/", spelled), spelled } : undefined;
}

/** One name for one file: a slash behind it names the same, and on Windows dots, blanks and the name of a stream. */
function toFileName(path: string): string {
  if (!isWindowsPath(path)) return path.replace(/(?<=[^/])\/+$/, "");
  const [root = "", ...parts] = path.split(/[\\/]/);
  const names = parts.map((part) => part.replace(/:.*$/s, "").replace(/[. ]+$/, ""));
  while (names.length > 1 && names.at(-1) === "") names.pop();
  return [root, ...names].join("\\");
}

const isWindowsPath = (path: string): boolean => /^[A-Za-z]:[\\/]|^\\\\/.test(path);

/** Whether a path, as resolved, says which file it is: not a relative one, and not another user's home. */
export function isResolved(path: string): boolean {
  return /^(?:\/|~\/|~$|[A-Za-z]:[\\/]|\\\\)/.test(path);
}

/** Folders of the system: nobody's work, whatever a request says. */
const NO_WORKSPACE =
  /^\/(?:bin|boot|dev|home|lib|lib64|opt|proc|root|run|sbin|srv|sys|usr|usr\/(?:bin|lib|local|sbin|share)|var|Users|System|Library)?$|^\/(?:etc|proc|sys|dev)(?:\/|$)/;

/** Whether a resolved path lies in a folder. What cannot be resolved lies outside, and the root is no workspace. */
export function isInside(path: string, folder: string | undefined): boolean {
  if (folder === undefined) return false;
  const root = folder.replace(/[/\\]+$/, "");
  if (root === "" || /^[A-Za-z]:$/.test(root) || NO_WORKSPACE.test(cleanPath("/", root))) return false;
  const isWindows = isWindowsPath(root);
  const spelled = isWindows ? path.replaceAll("/", "\\").toLowerCase() : path;
  const within = isWindows ? root.replaceAll("/", "\\").toLowerCase() : root;
  return spelled === within || spelled.startsWith(within + (isWindows ? "\\" : "/"));
}

/** Files of the system that hold nothing: whoever reads or writes them touches no file. */
export const isNoFile = (path: string): boolean =>
  /^\/dev\/(?:null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd\/\d+|(?:tcp|udp)\/.*)$/.test(path);

/**
 * What is too much of the named files to be judged in time, before any is resolved; null when nothing is.
 * INVARIANT: no call keeps the others waiting by what it names (services/gate/classifier.test.ts).
 */
export function toExcess(spelled: readonly string[], workingDirectory = ""): string | null {
  if (workingDirectory.length > pathMaxChars) {
    return `the working folder is longer than ${String(pathMaxChars)} characters`;
  }
  if (spelled.length > namedPathsMax) {
    return `it names more than ${String(namedPathsMax)} files; split it into several calls`;
  }
  let chars = 0;
  for (const path of spelled) {
    if (path.length > pathMaxChars) return `a path is longer than ${String(pathMaxChars)} characters`;
    chars += path.length + (path.startsWith("/") ? 0 : workingDirectory.length);
  }
  return chars > allPathsMaxChars
    ? `its paths are longer than ${String(allPathsMaxChars)} characters together; split it into several calls`
    : null;
}

/** Texts of an input that name a file by their form or by their field, wherever they stand in it. */
export function toPathLike(field: string, text: string): string | null {
  if (/^file:\/\//i.test(text)) return toFilePath(text);
  if (text === "" || text.length > pathMaxChars || /[\r\n]|^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return null;
  const isNamed = /(?:^|[_-])(?:path|paths|file|files|filename|dir|directory|folder|root)$/i.test(
    field.replace(/([a-z])([A-Z])/g, "$1_$2"),
  );
  return isNamed || /^(?:~?\/|\.{1,2}\/|[A-Za-z]:[\\/])/.test(text) ? text : null;
}

function toFilePath(address: string): string | null {
  try {
    const { pathname } = new URL(address);
    return decodeURIComponent(pathname);
  } catch {
    return address;
  }
}
