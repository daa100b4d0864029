import type { SimpleCommand, Word } from "./parsed-command.ts";
import { resolvePath } from "./paths.ts";

/** Folders whose loss is the loss of all work. */
export type Surroundings = { readonly workspace?: string; readonly home?: string };

/** Folders below which nothing is one project's own. */
const SYSTEM_FOLDER =
  /^\/(bin|boot|dev|etc|home|lib\d*|media|mnt|nix|opt|private|proc|root|run|sbin|snap|srv|sys|usr|var|Users|System|Library|Applications|Volumes)?$|^\/(home|Users)\/[^/]+$|^\/(usr|var|etc|opt)\/[^/]+$|^~(\/\.\.)*$/;
const EVERYTHING = /^(\.?\.?\/)*(\*|\.\*|\.\[!?\.\]\*|\{\*,\.\*\}|\*\*(\/\*)?)$/;

/** Whether a command deletes a root, a home, the workspace, or everything in the folder that it runs in. */
export function isWideDelete(command: SimpleCommand, around: Surroundings): boolean {
  return toTargets(command).some((word) => isWide(word, command.cwd, around));
}

function toTargets({ program, argv }: SimpleCommand): Word[] {
  if (program === "rm") {
    const isRecursive = argv.some((word) => /^(-[a-zA-Z]*[rR][a-zA-Z]*|--recursive)$/.test(toText(word)));
    return isRecursive ? argv.filter((word) => !toText(word).startsWith("-")) : [];
  }
  if (program !== "find" || !argv.some((word) => toText(word) === "-delete")) return [];
  // With a test it deletes what the test finds.
  const isPicking = argv.some((word) =>
    /^-(i?name|i?path|i?regex|newer\w*|mtime|mmin|size|empty)$/.test(toText(word)),
  );
  if (isPicking) return [];
  const roots: Word[] = [];
  for (const word of argv) {
    if (/^[-(!,]/.test(toText(word))) break;
    roots.push(word);
  }
  return roots.length > 0 ? roots : [{ kind: "literal", text: "." }];
}

function isWide(word: Word, cwd: string | undefined, around: Surroundings): boolean {
  const text = toText(word);
  if (EVERYTHING.test(text) && (word.kind === "unresolved" || text.includes("/"))) return true;
  // `rm -rf "$DIR"/*` is `rm -rf /*` where the variable is empty.
  if (/^\$\{?\w+\}?\/+\*?$/.test(text)) return true;
  if (/^(\$HOME|\$\{HOME\}|~\w*|\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)\/*(\*|\.\*)?$/.test(text)) return true;
  const bare = text.replace(/\/+(\*|\.\*)$/, "/");
  if (/[$`*?[{]/.test(bare)) return false;
  if (/^[./]+$/.test(bare)) return true;
  if (!bare.startsWith("/") && !bare.startsWith("~") && cwd === undefined) return false;
  const path = resolvePath(cwd ?? "/", bare);
  if (SYSTEM_FOLDER.test(path)) return true;
  return [around.workspace, around.home, cwd].some(
    (folder) => folder !== undefined && (folder === path || folder.startsWith(`${path}/`)),
  );
}

const toText = (word: Word): string =>
  word.kind === "literal" ? word.text : word.source.replaceAll('"', "").replaceAll("'", "");
