import { readCommand } from "./classify-command.ts";
import type { ParseCommand } from "./classify-command.ts";
import {
  climbsMax,
  isFollowedInPart,
  isInside,
  isNoFile,
  resolvePath,
  toExcess,
  toPatchPaths,
} from "./classify-paths.ts";
import type { PatchPath } from "./classify-paths.ts";
import { nothingRead, toDistinct } from "./classify-reading.ts";
import type { Reading } from "./classify-reading.ts";
import { hasUnresolvedUrl } from "./classify-urls.ts";
import type { AskedCall, TouchedPath } from "./classified.ts";
import { toCarriedWords, toIntents } from "./shell/command-intents.ts";
import { runsElsewhere } from "./shell/code-elsewhere.ts";
import { takesCodeByVariable } from "./shell/code-paths.ts";
import type { DeclaredPrograms } from "./shell/declared-programs.ts";
import { listsEnvironment, startsAgent } from "./shell/environment-list.ts";
import { laysTreeOver, toGitCall } from "./shell/git-words.ts";
import { toSecretCandidates } from "./shell/glob-candidates.ts";
import { onlyLooksAtPatch } from "./shell/looks-only.ts";
import type { ParsedCommand, SimpleCommand, WrittenPath } from "./shell/parsed-command.ts";
import {
  isForkBomb,
  runsFetched,
  takesDatabaseInput,
  toProgramSignals,
  unpacksFetched,
} from "./shell/network-use.ts";
import { toDeleteIntents, toReadIntents, toWriteIntents } from "./shell/path-intents.ts";
import { toPaths } from "./shell/path-words.ts";
import { PROGRAM_TABLE } from "./shell/program-table.ts";
import { toSqlOf } from "./shell/sql-clients.ts";
import { namesRelease } from "./shell/task-names.ts";
import { hasUnknownVerb } from "./shell/unknown-verb.ts";
import { joinVerdicts, opaqueSql } from "./sql/classify-sql.ts";
import type { SqlVerdict } from "./sql/classify-sql.ts";
import type { SqlParser } from "./sql/load-sql-parser.ts";
import { judgeSqlOf } from "./sql/sql-in-commands.ts";

/** What commands are read with. */
export type Reader = {
  readonly parse: ParseCommand;
  readonly sql: SqlParser;
  readonly home: string | undefined;
};

/** Most commands of one call whose SQL is parsed; what further ones do is opaque. */
const sqlCommandsMax = 64;

/** What a call runs in a shell, and touches by it. */
export function readShell(
  request: AskedCall,
  named: readonly string[],
  { parse, sql, home }: Reader,
  programs?: DeclaredPrograms,
): Reading {
  const { working_directory: workingDirectory, input, tool, tool_alias: alias } = request;
  const names = alias === undefined ? [tool] : [tool, alias];
  const command = readCommand(named, { input, workingDirectory, home, names, programs }, parse);
  const here = command.commands.filter(({ where }) => where === "here");
  const carried = here.flatMap((one) =>
    toCarriedWords(one).flatMap((text) =>
      text.startsWith("~") ? [text] : (toPaths({ kind: "literal", text }, toFolders(one.cwd)) ?? [text]),
    ),
  );
  const patches = here.flatMap((one) => toPatches(one, home));
  const found = [...command.reads, ...command.writes.map(({ path }) => path)].flatMap(toSecretCandidates);
  const ofMode = (paths: readonly string[], mode: TouchedPath["mode"]): TouchedPath[] =>
    paths.map((path) => ({ path: atHome(path, home), mode }));
  const touched = toDistinct([
    ...ofMode([...command.reads, ...carried, ...found], "read"),
    ...ofMode([...command.writes.map(({ path }) => path), ...patches.map(({ path }) => path)], "write"),
  ]).filter(({ path }) => !isNoFile(path));
  const excess = toExcess(touched.map(({ path }) => path));
  if (excess !== null) return { ...nothingRead, command, excess };
  const clients = command.commands.filter((one) => toSqlOf(one) !== null);
  const verdicts = clients.slice(0, sqlCommandsMax).flatMap((one) => judgeSqlOf(sql, one) ?? []);
  if (clients.length > sqlCommandsMax) verdicts.push(opaqueSql);
  const intents = toIntents(command, {
    ...(workingDirectory === undefined ? {} : { workspace: workingDirectory }),
    ...(home === undefined ? {} : { home }),
  });
  const deleted = patches.flatMap(({ path, isDelete }) => (isDelete ? [path] : []));
  const signals: string[] = [
    ...intents,
    ...command.commands.flatMap(({ declared }) => declared?.signals ?? []),
    ...toSqlSignals(verdicts),
    ...toReadIntents(found),
    ...toWriteIntents(patches.map(({ path }) => path)),
    ...(deleted.length > 0 ? ["file.delete", ...toDeleteIntents(deleted)] : []),
  ];
  signals.push(...toProgramSignals(command));
  if (command.commands.some(takesDatabaseInput)) signals.push("database.input");
  if (runsFetched(command)) signals.push("network.runs-fetched");
  if (unpacksFetched(command)) signals.push("network.unpacks-fetched");
  if (here.some(appliesHiddenPatch)) signals.push("patch.hidden");
  if (here.some(laysTreeOver)) signals.push("path.fills-workspace");
  if (
    workingDirectory !== undefined &&
    here.some((one) => runsElsewhere(one, (path) => isInside(atHome(path, home), workingDirectory)))
  )
    signals.push("code.elsewhere");
  if (
    takesCodeByVariable(
      command,
      (path) => workingDirectory !== undefined && isInside(atHome(path, home), workingDirectory),
    )
  )
    signals.push("code.elsewhere");
  if (namesRelease(command)) signals.push("task.release");
  if (named.some((text) => isForkBomb(text))) signals.push("fork.bomb");
  if (command.opaque.length > 0) signals.push("command.opaque");
  for (const { kind } of command.opaque) signals.push(`command.opaque.${kind}`);
  if (command.commands.some(isUnknown)) signals.push("command.unknown-program");
  if (command.commands.some(hasUnknownVerb)) signals.push("command.unknown-verb");
  if (command.commands.some(isPrivileged)) signals.push("command.privileged");
  if (command.commands.some(({ where }) => where !== "here")) signals.push("command.remote");
  if (hasUnresolvedUrl(command)) signals.push("url.unresolved");
  if (
    command.unresolvedReads.length > 0 ||
    command.opaque.some(({ kind }) => kind === "unresolved_path") ||
    here.some(appliesHiddenPatch)
  )
    signals.push("path.unresolved");
  if (command.writes.some((write) => fillsFolder(write, workingDirectory)))
    signals.push("path.fills-workspace");
  if (here.some(listsEnvironment)) signals.push("environment.list");
  if (command.commands.some(startsAgent)) signals.push("agent.start");
  // Of so many spellings that climb, and of so many files, nobody follows each: a link among them leads anywhere.
  const isCut = isFollowedInPart(touched, command.operands, command.climbs ?? []);
  if (isCut) signals.push("path.unresolved");
  if (command.unknownReads.length > 0 || globsHiddenFiles(command) || isCut)
    signals.push("path.unresolved.read");
  return {
    named,
    touched,
    command,
    operandPaths: [...new Set(command.operands.map((path) => atHome(path, home)))].sort(),
    signals,
    excess: null,
    climbs: (command.climbs ?? []).slice(0, climbsMax),
  };
}

/** Names that nobody tells, laid into the working folder or one above it. */
function fillsFolder({ path }: WrittenPath, workspace: string | undefined): boolean {
  return workspace !== undefined && path.endsWith("/*") && `${workspace}/`.startsWith(path.slice(0, -1));
}

/** A setting by which `*` finds hidden files as well. */
function globsHiddenFiles({ commands, assignments, reads }: ParsedCommand): boolean {
  const isSet =
    assignments.some(({ name }) => name === "GLOBIGNORE") ||
    commands.some(
      ({ program, argv }) =>
        /^(?:shopt|bash|rbash|setopt|zsh)$/.test(program) &&
        argv.some((word) => word.kind === "unresolved" || /dotglob|glob_?dots/i.test(word.text)),
    );
  return isSet && reads.some((path) => /\/[*?[]/.test(path));
}

const patchPrograms = /^(?:apply_?patch|patch|git)$/;

/** Text of a patch that a command applies; null: it applies one that is not in the text. Undefined: it applies none. */
function toPatchText(command: SimpleCommand): string | null | undefined {
  if (!patchPrograms.test(command.program)) return undefined;
  const words = command.argv.map((word) => (word.kind === "literal" ? word.text : null));
  if (command.program === "git" && !words.some((word) => word === "apply" || word === "am")) return undefined;
  if (onlyLooksAtPatch(command) || isOtherLook(command, words)) return undefined;
  const own = command.program.startsWith("apply") ? words[0] : undefined;
  if (own !== undefined) return own;
  return command.inputText?.kind === "literal" ? command.inputText.text : null;
}

/** `git show --stat apply`, a patch tool's `--help`: no patch at all. */
const isOtherLook = ({ program, argv }: SimpleCommand, words: readonly (string | null)[]): boolean =>
  program === "git"
    ? !/^(?:apply|am)$/.test(toGitCall(argv)?.verb ?? "apply") &&
      words.some((word) => /^--(?:help|stat|numstat|summary)$/.test(word ?? ""))
    : program !== "patch" && /^--(?:help|version)$/.test(words[0] ?? "");

function toPatches(command: SimpleCommand, home: string | undefined): PatchPath[] {
  const text = toPatchText(command);
  if (typeof text !== "string") return [];
  return toPatchPaths([text]).map(({ path, isDelete }) => ({
    path: resolvePath(command.cwd, home, path),
    isDelete,
  }));
}

function appliesHiddenPatch(command: SimpleCommand): boolean {
  return toPatchText(command) === null;
}

const toFolders = (cwd: string | undefined): readonly string[] | undefined =>
  cwd === undefined ? undefined : [cwd];
const atHome = (path: string, home: string | undefined): string =>
  path.startsWith("~") ? resolvePath(undefined, home, path) : path;
/** A program of the workspace is opaque already, by its path. */
const isUnknown = ({ risk, kind, path }: SimpleCommand): boolean =>
  risk === "unknown" &&
  kind === "program" &&
  (!path.includes("/") || /^\/(usr\/|opt\/|run\/)?[\w/-]*bin\//.test(path));
const isPrivileged = ({ program, wrappers }: SimpleCommand): boolean =>
  [program, ...wrappers].some((name) => PROGRAM_TABLE.get(name)?.risk === "privilege");

/** Signals of SQL, wherever it stands. */
export function toSqlSignals(verdicts: readonly SqlVerdict[]): string[] {
  if (verdicts.length === 0) return [];
  const { effects, isDestroying } = joinVerdicts(verdicts);
  return [...effects.map((effect) => `sql.${effect}`), ...(isDestroying ? ["infra.destroy"] : [])];
}
