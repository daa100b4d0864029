import type { SimpleCommand, Word } from "./parsed-command.ts";
import { hasName } from "./options.ts";
import { resolvePath } from "./path-words.ts";
import { INTERPRETERS } from "./program-table.ts";

/** Options that say in which folder, or by which file, a build or a test runs. */
const POINTS =
  /^(?:-C|-f|-p|-c|-d|-t|-I|-r|-S|--?(?:prefix|cwd|dir|directory|chdir|file|makefile|justfile|taskfile|manifest-path|project|project-dir|package-path|config|config-file|rootdir|root|require|loader|import|rcfile|init-script|gemfile|bazelrc|tsconfig))(?:=|$)/;
/** Folders whose content comes with the machine. */
const SYSTEM =
  /^\/(?:usr|opt|lib\w*|bin|sbin|etc|dev|proc|sys|nix|run|snap|System|Library|Applications)(?:\/|$)/;

/** Whether a build, a test or another program of the workspace's code takes code or settings from another place. */
export function runsElsewhere(command: SimpleCommand, isInside: (path: string) => boolean): boolean {
  const isOwnCode = command.risk === "project_code";
  if (command.where !== "here" || !(isOwnCode || findsCode(command))) return false;
  const folders = command.folders ?? (command.cwd === undefined ? [] : [command.cwd]);
  if (folders.length === 0 || !folders.every(isInside)) return true;
  return (
    isOwnCode &&
    command.argv.some((word, at) =>
      folders.some((folder) => pointsOut(word, command.argv[at - 1], folder, isInside)),
    )
  );
}

/** Whether an interpreter looks in its folder for code that no word names by its path: `--test`, `-m name`, `-r name`, `-M:x`. */
function findsCode({ program, risk, argv }: SimpleCommand): boolean {
  const shape = INTERPRETERS.get(program) ?? INTERPRETERS.get(program.replace(/[\d.]+$/, ""));
  if (risk !== "interpreter" || shape === undefined) return false;
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at];
    // What is not known may name a file, and is judged as such.
    if (word?.kind !== "literal" || !word.text.startsWith("-") || hasName(shape.queries, word.text))
      return false;
    const name = /^--[\w-]+/.exec(word.text)?.[0] ?? word.text;
    if (shape.tasks?.test(word.text) === true || name === "--test" || name === "--run") return true;
    if (shape.module !== undefined && /^-[bBdEhiIOqsSuvxP]*m/.test(word.text)) return true;
    // Ruby and perl look in folders of their own.
    if (shape.language === "javascript" && namesModule(name, word.text, argv[at + 1], shape.loads))
      return true;
    if (hasName(shape.values, word.text) || hasName(shape.loads, word.text)) at += 1;
  }
  return false;
}

function namesModule(name: string, text: string, next: Word | undefined, loads: string | undefined): boolean {
  const isShort = /^-r./.test(text);
  if (!isShort && !hasName(loads, name)) return false;
  const attached = isShort ? text.slice(2) : /=([\s\S]*)$/.exec(text)?.[1];
  const module = attached ?? (next?.kind === "literal" ? next.text : "");
  return name !== "--env-file" && !/^(?:[./]|node:|$)/.test(module);
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
