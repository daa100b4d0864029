import type { Json, JsonObject } from "../../schemas/gate.ts";
import { resolvePath } from "./classify-paths.ts";
import type { DeclaredPrograms } from "./shell/declared-programs.ts";
import { parseCommand } from "./shell/parse-command.ts";
import type { OpaqueReason, ParsedCommand } from "./shell/parsed-command.ts";
import type { BashParser } from "./shell/syntax-tree.ts";
import { classifyVariable } from "./shell/variable-table.ts";

/** Parses a command line in a folder; the same one is parsed once. */
export type ParseCommand = (
  text: string,
  cwd: string | undefined,
  programs?: DeclaredPrograms,
) => ParsedCommand;

const keptTextsMax = 512;
const keptCharsMax = 262_144;

/** Parsing is pure, and agents repeat themselves: what was parsed lately is kept, within bounds. */
export function createParse(bash: BashParser, home: string | undefined): ParseCommand {
  let kept = new Map<string, ParsedCommand>();
  let keptFor: DeclaredPrograms | undefined;
  let keptChars = 0;
  return (text, cwd, programs) => {
    if (programs !== keptFor) {
      // Another bundle may know other programs.
      kept = new Map();
      keptFor = programs;
      keptChars = 0;
    }
    const key = `${cwd ?? ""}\0${text}`;
    const before = kept.get(key);
    if (before !== undefined) {
      kept.delete(key);
      kept.set(key, before);
      return before;
    }
    const parsed = parseCommand(bash, text, {
      ...(cwd === undefined ? {} : { cwd }),
      ...(home === undefined ? {} : { home }),
      ...(programs === undefined ? {} : { programs }),
    });
    if (key.length > keptCharsMax / 16) return parsed;
    kept.set(key, parsed);
    keptChars += key.length;
    for (const oldest of kept.keys()) {
      if (kept.size <= keptTextsMax && keptChars <= keptCharsMax) break;
      kept.delete(oldest);
      keptChars -= oldest.length;
    }
    return parsed;
  };
}

/** A list of words as the command line that runs just them. One with blanks alone is a command line already. */
export function toCommandText(words: readonly string[]): string {
  const [first = ""] = words;
  if (words.length === 1 && /\s/.test(first)) return first;
  return words
    .map((word) => (/^[\w@%+:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

/** The field by which runtimes take a command's folder; another one may be taken, or left aside as unknown. */
const folderField = "workdir";
const perhapsFolderFields = ["cwd", "working_directory"];
/** A shell whose language is read here, by its name or where systems keep it; any other program may do anything with a text. */
const knownShell = /^(?:(?:\/usr(?:\/local)?|\/opt\/homebrew)?\/bin\/)?(?:bash|sh|zsh|dash|ksh)$/;
const foreignTool = /powershell|pwsh/i;

/** What the texts of a call run together. */
export function readCommand(
  texts: readonly string[],
  call: {
    readonly input: JsonObject;
    readonly workingDirectory: string | undefined;
    readonly home: string | undefined;
    /** Names by which the runtime and the catalogue know the tool. */
    readonly names: readonly string[];
    readonly programs: DeclaredPrograms | undefined;
  },
  parse: ParseCommand,
): ParsedCommand {
  const foreign = toForeignShell(call.input) ?? call.names.find((name) => foreignTool.test(name));
  if (foreign !== undefined)
    return join(
      [],
      texts.map((text) => ({ kind: "foreign_shell", detail: text.slice(0, 2_000), program: foreign })),
    );
  const folders = toFolders(call.input, call.workingDirectory, call.home);
  return join(
    texts.flatMap((text) => folders.map((cwd) => parse(text, cwd, call.programs))),
    toEnvironmentReasons(call.input),
  );
}

/** Whether a runtime that knows the field would take its default. */
const isLeftOut = (value: Json | undefined): value is null | "" | undefined =>
  value === undefined || value === null || value === "";

/** The program that the runtime would give the command to, where that is none whose language is read here. */
function toForeignShell(input: JsonObject): string | undefined {
  const shell = input["shell"];
  if (isLeftOut(shell)) return undefined;
  // What a runtime makes of a list or of `true` is its own affair.
  const name = typeof shell === "string" ? shell : JSON.stringify(shell);
  return typeof shell === "string" && knownShell.test(shell) ? undefined : name.slice(0, 200);
}

/** The folders that the command may run in; undefined: one that no text tells. */
function toFolders(
  input: JsonObject,
  workingDirectory: string | undefined,
  home: string | undefined,
): (string | undefined)[] {
  const toFolder = (field: string): (string | undefined)[] => {
    const given = input[field];
    if (isLeftOut(given)) return [];
    if (typeof given !== "string") return [undefined];
    const folder = resolvePath(workingDirectory, home, given);
    return [folder.startsWith("/") ? folder : undefined];
  };
  const here = workingDirectory?.startsWith("/") === true ? workingDirectory : undefined;
  const own = toFolder(folderField);
  return [...new Set([...(own.length === 0 ? [here] : own), ...perhapsFolderFields.flatMap(toFolder)])];
}

/** Variables that the runtime sets for the command, where they change what runs. */
function toEnvironmentReasons(input: JsonObject): OpaqueReason[] {
  const environment = input["env"];
  if (isLeftOut(environment)) return [];
  // A list, or a text of lines: which variables a runtime takes from it is not known.
  if (typeof environment !== "object" || Array.isArray(environment))
    return [{ kind: "environment", detail: "env" }];
  return Object.entries(environment)
    .filter(
      ([name, value]) => classifyVariable(name, typeof value === "string" ? value : undefined) !== "none",
    )
    .slice(0, 100)
    .map(([name]): OpaqueReason => ({ kind: "environment", detail: name.slice(0, 200) }));
}

function join(parsed: readonly ParsedCommand[], reasons: readonly OpaqueReason[]): ParsedCommand {
  const [only] = parsed;
  if (only !== undefined && parsed.length === 1 && reasons.length === 0) return only;
  return {
    commands: parsed.flatMap(({ commands }) => commands),
    writes: parsed.flatMap(({ writes }) => writes),
    reads: parsed.flatMap(({ reads }) => reads),
    unresolvedReads: parsed.flatMap(({ unresolvedReads }) => unresolvedReads),
    unknownReads: parsed.flatMap(({ unknownReads }) => unknownReads),
    operands: parsed.flatMap(({ operands }) => operands),
    assignments: parsed.flatMap(({ assignments }) => assignments),
    opaque: [...parsed.flatMap(({ opaque }) => opaque), ...reasons],
    climbs: parsed.flatMap(({ climbs }) => climbs ?? []),
  };
}
