import { toGitCall } from "./git-words.ts";
import type { SimpleCommand, Word } from "./parsed-command.ts";
import { resolvePath } from "./path-words.ts";

/** Folders whose loss is the loss of all work. */
export type Surroundings = { readonly workspace?: string; readonly home?: string };

/** Folders below which nothing is one project's own. */
const SYSTEM_FOLDER =
  /^\/(bin|boot|dev|etc|home|lib\d*|media|mnt|nix|opt|private|proc|root|run|sbin|snap|srv|sys|usr|var|Users|System|Library|Applications|Volumes)?$|^\/(home|Users)\/[^/]+$|^\/(usr|var|etc|opt)\/[^/]+$|^~(\/\.\.)*$/;
/** Names as folders have them: a glob that finds many of these was written for no particular ones. */
const USUAL_NAMES = ["a", "Z0", "7z", "src", "x.txt", "main.c", "README.md"];
const manyNames = 3;
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
  const operands = argv.filter((word) => !toText(word).startsWith("-"));
  const has = (option: RegExp): boolean => argv.some((word) => option.test(toText(word)));
  switch (program) {
    case "rimraf":
    case "trash":
    case "truncate":
    case "shred":
      return operands;
    case "tar":
    case "gtar":
      return has(/^--remove-files$/) ? operands : [];
    case "chmod":
      return has(TAKES_ALL_RIGHTS) ? operands : [];
    case "mv":
      return /^\/dev\//.test(toText(operands.at(-1) ?? NOTHING)) ? operands.slice(0, -1) : [];
    case "git": {
      const call = toGitCall(argv);
      const isKept = call?.rest.some((word) => /^--(?:cached|dry-run)$|^-[a-zA-Z]*n/.test(toText(word)));
      return call?.verb === "rm" && isKept === false
        ? call.rest.filter((word) => !toText(word).startsWith("-"))
        : [];
    }
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

/** A mode without the owner's right to read: what lies below is out of reach. */
const TAKES_ALL_RIGHTS = /^(?:0*[0-3]?[0-7]{1,2}|(?:[go]*[ua][ugoa]*)?(?:-[rwxX]*r[rwxX]*|=[wxX]*))$/;
const NOTHING: Word = { kind: "literal", text: "" };

/** `?*`, `[!.]*` and their like as the `*` that they are. */
function toPlainGlob(text: string): string {
  if (!/[*?[]/.test(text) || text.length > 256) return text;
  const parts = text.replace(/\/+$/, "").split("/");
  return parts
    .map((part) => (findsMany(part) ? "*" : part))
    .join("/")
    .replace(/\*(?:\/\*)+$/, "*");
}

function findsMany(glob: string): boolean {
  if (!/[*?[]/.test(glob) || /[$`{}\\]/.test(glob)) return false;
  const pattern = glob.replace(
    /\[([!^]?)(\]?[^\]]*)\]|\*+|\?|[.+()|]/g,
    (sign, not: string | undefined, set: string | undefined) =>
      set !== undefined
        ? `[${not === "" ? "" : "^"}${set.replace(/[\\[\]]/g, "\\$&")}]`
        : sign.startsWith("*")
          ? ".*"
          : sign === "?"
            ? "."
            : `\\${sign}`,
  );
  try {
    const test = new RegExp(`^${pattern}$`);
    return USUAL_NAMES.filter((name) => test.test(name)).length >= manyNames;
  } catch {
    // A set that is none: what it finds is not known.
    return true;
  }
}

function isWide(word: Word, cwd: string | undefined, around: Surroundings): boolean {
  const text = word.kind === "literal" ? word.text : toPlainGlob(toText(word));
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
