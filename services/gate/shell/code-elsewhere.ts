import type { SimpleCommand, Word } from "./parsed-command.ts";
import { resolvePath } from "./paths.ts";

/** Options that say in which folder, or by which file, a build or a test runs. */
const POINTS =
  /^(?:-C|-f|-p|-c|-d|-t|-I|-r|-S|--?(?:prefix|cwd|dir|directory|chdir|file|makefile|justfile|taskfile|manifest-path|project|project-dir|package-path|config|config-file|rootdir|root|require|loader|import|rcfile|init-script|gemfile|bazelrc|tsconfig))(?:=|$)/;
/** Folders whose content comes with the machine. */
const SYSTEM =
  /^\/(?:usr|opt|lib\w*|bin|sbin|etc|dev|proc|sys|nix|run|snap|System|Library|Applications)(?:\/|$)/;

/** Whether a build, a test or another program of the workspace's code takes code or settings from another place. */
export function runsElsewhere(command: SimpleCommand, isInside: (path: string) => boolean): boolean {
  if (command.risk !== "project_code" || command.where !== "here") return false;
  const folders = command.folders ?? (command.cwd === undefined ? [] : [command.cwd]);
  if (folders.length === 0 || !folders.every(isInside)) return true;
  return command.argv.some((word, at) =>
    folders.some((folder) => pointsOut(word, command.argv[at - 1], folder, isInside)),
  );
}

function pointsOut(
  word: Word,
  before: Word | undefined,
  folder: string,
  isInside: (path: string) => boolean,
): boolean {
  if (word.kind === "unresolved") {
    const isPointed = (before?.kind === "literal" && POINTS.test(before.text)) || POINTS.test(word.prefix);
    if (word.reason === "home") return true;
    const start = word.prefix.replace(/^[^=]*=/, "");
    return isPointed && (start === "" || start.startsWith("-") || /^(?:[/~]|\.\.)/.test(start));
  }
  const path = toNamedPath(word.text);
  if (path === undefined) return false;
  const resolved = path.startsWith("~") ? path : resolvePath(folder, path);
  return !isInside(resolved) && !SYSTEM.test(resolved);
}

/** The path that a word names by its form: `/x`, `~/x`, `../x`, `--config=/x`, `-C/x`. */
function toNamedPath(text: string): string | undefined {
  if (/:\/\/|^\/\/|^-D|\s/.test(text)) return undefined;
  if (text === "/") return undefined;
  const isOption = text.startsWith("-");
  // `PREFIX=/usr/local` sets a variable of make.
  if (!isOption && /^[A-Za-z_]\w*[:?+]?=/.test(text)) return undefined;
  const path = isOption ? /^(?:--?[\w.-]+=|-[A-Za-z])(.*)$/.exec(text)?.[1] : text;
  return path !== undefined && /^(?:[/~]|\.\.(?:\/|$))|\/\.\.(?:\/|$)/.test(path) ? path : undefined;
}
