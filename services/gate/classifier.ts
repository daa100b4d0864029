import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import { createParse, readCommand } from "./classify-command.ts";
import type { ParseCommand } from "./classify-command.ts";
import { collectTexts, holdsPrototypeKey, readResource, unreadable } from "./classify-input.ts";
import {
  isInside,
  isNoFile,
  isResolved,
  resolvePath,
  toExcess,
  toPatchPaths,
  toPathLike,
} from "./classify-paths.ts";
import { hasUnresolvedUrl, readUrl, toUrlsInTexts, toUrlsOfCommand } from "./classify-urls.ts";
import type { Classified, Classify, Finding, TouchedPath } from "./classified.ts";
import { findTool } from "./find-tool.ts";
import type { Policy, ToolEntry } from "./policy/policy.ts";
import { toCarriedWords, toIntents } from "./shell/command-intents.ts";
import type { ParsedCommand } from "./shell/parsed-command.ts";
import { toDeleteIntents, toReadIntents, toWriteIntents } from "./shell/path-intents.ts";
import { toPaths } from "./shell/paths.ts";
import { PROGRAM_TABLE } from "./shell/program-table.ts";
import type { BashParser } from "./shell/syntax-tree.ts";
import { testSignals } from "./signals.ts";
import { classifySql, joinVerdicts } from "./sql/classify-sql.ts";
import type { SqlVerdict } from "./sql/classify-sql.ts";
import type { SqlParser } from "./sql/load-sql-parser.ts";
import { judgeSqlOf, toSqlOf } from "./sql/sql-in-commands.ts";

/** What classification is made with. `home` is given where commands run on this machine. */
export interface ClassifierParts {
  readonly bash: BashParser;
  readonly sql: SqlParser;
  readonly home?: string;
}

/** Most problems with a tool's schema that a finding names. */
const namedProblemsMax = 5;

/** Stage 1: what a request is about. The same request, policy and links give the same value. */
export function createClassifier({ bash, sql, home }: ClassifierParts): Classify {
  const reader: Reader = { parse: createParse(bash, home), sql, home };
  /** A request is classified for its intent, its plan and its decision; it does not change in between. */
  const before = new WeakMap<
    GateRequest,
    { readonly policy: Policy; readonly realPaths: RealPaths | undefined; readonly classified: Classified }
  >();
  return (request, policy, realPaths) => {
    const known = before.get(request);
    if (known?.policy === policy && known.realPaths === realPaths) return known.classified;
    const entry = findTool(policy.tools, request.tool);
    let classified: Classified;
    try {
      classified = readRequest(request, policy, entry, realPaths, reader);
    } catch {
      classified = notUnderstood(entry);
    }
    before.set(request, { policy, realPaths, classified });
    return classified;
  };
}

type RealPaths = ReadonlyMap<string, string>;
type Reader = { readonly parse: ParseCommand; readonly sql: SqlParser; readonly home: string | undefined };

/** What of a request touches the world. */
type Reading = {
  readonly named: readonly string[];
  readonly touched: readonly TouchedPath[];
  readonly command: ParsedCommand | null;
  readonly operandPaths: readonly string[];
  readonly signals: readonly string[];
  readonly excess: string | null;
};
const nothingRead: Reading = {
  named: [],
  touched: [],
  command: null,
  operandPaths: [],
  signals: [],
  excess: null,
};

function readRequest(
  request: GateRequest,
  policy: Policy,
  entry: ToolEntry | null,
  realPaths: RealPaths | undefined,
  reader: Reader,
): Classified {
  const { input, working_directory: workingDirectory } = request;
  const findings = toFindings(request, entry);
  const named = entry === null ? [] : readResource(entry, input, findings);
  const reading = entry === null ? nothingRead : readTouched(request, entry, named, reader);
  if (reading.excess !== null) findings.push(unreadable(reading.excess));
  const touched = withRealPaths(reading.touched, realPaths);
  const { command } = reading;
  let texts: readonly string[] | null = null;
  const allTexts = (): readonly string[] => (texts ??= collectTexts(input));
  let urls: readonly URL[] | null = null;
  const tested = testSignals(policy.signals, {
    tool: request.tool,
    input,
    allTexts,
    touched,
    workingDirectory,
    command,
    urls: () => (urls ??= toUrls(request.tool, entry, named, command, allTexts)),
  });
  const signals = new Set([...reading.signals, ...toPathSignals(touched, workingDirectory), ...tested.held]);
  if (entry !== null && entry.tool !== request.tool) signals.add("tool.wildcard");
  return {
    entry,
    effect: entry?.effect ?? "unknown",
    dataClass: entry?.dataClass ?? "unknown",
    action: entry?.action ?? "unknown",
    resource: reading.excess === null ? (reading.named[0] ?? null) : null,
    findings: [...findings, ...tested.findings],
    touched,
    command,
    operandPaths: reading.operandPaths,
    signals: [...signals].sort(),
  };
}

function toFindings(request: GateRequest, entry: ToolEntry | null): Finding[] {
  const findings: Finding[] = [];
  if (entry === null) {
    findings.push({
      rule: "classify.tool-unknown",
      reason: "TOOL_UNKNOWN",
      message: `the tool \`${request.tool}\` is not in the catalogue; ask your platform team to list it`,
    });
  }
  if (holdsPrototypeKey(request.input)) findings.push(unreadable("the input has a key named `__proto__`"));
  const problems = entry === null ? [] : entry.inputProblems(request.input);
  if (problems.length > 0) {
    const more =
      problems.length > namedProblemsMax ? `; and ${String(problems.length - namedProblemsMax)} more` : "";
    findings.push({
      rule: "classify.schema-mismatch",
      reason: "SCHEMA_MISMATCH",
      message: `the input is not what \`${request.tool}\` takes: ${problems.slice(0, namedProblemsMax).join("; ")}${more}`,
    });
  }
  return findings;
}

function readTouched(
  request: GateRequest,
  entry: ToolEntry,
  named: readonly string[],
  reader: Reader,
): Reading {
  switch (entry.resource.kind) {
    case "command":
      return readShell(request, named, reader);
    case "sql":
      return {
        ...nothingRead,
        named,
        signals: toSqlSignals(named.map((text) => classifySql(reader.sql, text, "postgres"))),
      };
    case "path":
      return readFiles(
        request,
        entry,
        named.map((path) => ({ path, isDelete: false })),
        reader.home,
      );
    case "patch":
      return readFiles(request, entry, toPatchPaths(named), reader.home);
    case "url":
    case "text":
      return { ...readFiles(request, entry, [], reader.home), named };
  }
}

function readFiles(
  request: GateRequest,
  entry: ToolEntry,
  spelled: readonly { readonly path: string; readonly isDelete: boolean }[],
  home: string | undefined,
): Reading {
  const { working_directory: workingDirectory } = request;
  const liked = request.tool.startsWith("mcp.") ? toPathLikes(request.input) : [];
  const all = [...spelled, ...liked.map((path) => ({ path, isDelete: false }))];
  const excess = toExcess(
    all.map(({ path }) => path),
    workingDirectory,
  );
  if (excess !== null) return { ...nothingRead, excess };
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
    signals: [
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

/** Texts of another's tool that name files by their form or their field, at any depth. */
function toPathLikes(input: JsonObject): string[] {
  const found = new Set<string>();
  const open: [string, unknown][] = Object.entries(input);
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const [field, value] = one;
    if (typeof value === "string") {
      const path = toPathLike(field, value);
      if (path !== null) found.add(path);
    } else if (Array.isArray(value)) {
      for (const child of value) open.push([field, child]);
    } else if (typeof value === "object" && value !== null) {
      for (const child of Object.entries(value)) open.push(child);
    }
  }
  return [...found];
}

function readShell(request: GateRequest, named: readonly string[], { parse, sql, home }: Reader): Reading {
  const { working_directory: workingDirectory, input, tool, tool_alias: alias } = request;
  const names = alias === undefined ? [tool] : [tool, alias];
  const command = readCommand(named, { input, workingDirectory, home, names }, parse);
  const carried = command.commands
    .filter(({ where }) => where === "here")
    .flatMap((one) =>
      toCarriedWords(one).flatMap((text) => toPaths({ kind: "literal", text }, toFolders(one.cwd)) ?? []),
    );
  const touched = toDistinct([
    ...[...command.reads, ...carried].map((path): TouchedPath => ({
      path: atHome(path, home),
      mode: "read",
    })),
    ...command.writes.map(({ path }): TouchedPath => ({ path: atHome(path, home), mode: "write" })),
  ]).filter(({ path }) => !isNoFile(path));
  const excess = toExcess(touched.map(({ path }) => path));
  if (excess !== null) return { ...nothingRead, command, excess };
  const verdicts = command.commands.flatMap((one) => judgeSqlOf(sql, one) ?? []);
  const sqlFiles = command.commands.flatMap((one) =>
    (toSqlOf(one)?.files ?? []).flatMap((word) => toPaths(word, toFolders(one.cwd)) ?? []),
  );
  const intents = toIntents(command, {
    ...(workingDirectory === undefined ? {} : { workspace: workingDirectory }),
    ...(home === undefined ? {} : { home }),
  });
  const signals: string[] = [...intents, ...toSqlSignals(verdicts)];
  if (command.opaque.length > 0) signals.push("command.opaque");
  for (const { kind } of command.opaque) signals.push(`command.opaque.${kind}`);
  if (command.commands.some(isPrivileged)) signals.push("command.privileged");
  if (command.commands.some(({ where }) => where !== "here")) signals.push("command.remote");
  if (hasUnresolvedUrl(command)) signals.push("url.unresolved");
  if (command.unresolvedReads.length > 0 || command.opaque.some(({ kind }) => kind === "unresolved_path"))
    signals.push("path.unresolved");
  return {
    named,
    touched,
    command,
    operandPaths: [...new Set([...command.operands, ...sqlFiles].map((path) => atHome(path, home)))].sort(),
    signals,
    excess: null,
  };
}

const toFolders = (cwd: string | undefined): readonly string[] | undefined =>
  cwd === undefined ? undefined : [cwd];
const atHome = (path: string, home: string | undefined): string =>
  path.startsWith("~") ? resolvePath(undefined, home, path) : path;
const isPrivileged = ({ program, wrappers }: ParsedCommand["commands"][number]): boolean =>
  [program, ...wrappers].some((name) => PROGRAM_TABLE.get(name)?.risk === "privilege");

function toSqlSignals(verdicts: readonly SqlVerdict[]): string[] {
  if (verdicts.length === 0) return [];
  const { effects, isDestroying } = joinVerdicts(verdicts);
  return [...effects.map((effect) => `sql.${effect}`), ...(isDestroying ? ["infra.destroy"] : [])];
}

function toUrls(
  tool: string,
  entry: ToolEntry | null,
  named: readonly string[],
  command: ParsedCommand | null,
  allTexts: () => readonly string[],
): readonly URL[] {
  if (command !== null) return toUrlsOfCommand(command);
  if (entry?.resource.kind === "url") {
    const own = named.map((text) => readUrl(entry.resource.fields.join(", "), text));
    return tool.startsWith("mcp.") ? [...own, ...toUrlsInTexts(allTexts())] : own;
  }
  return tool.startsWith("mcp.") ? toUrlsInTexts(allTexts()) : [];
}

function toPathSignals(touched: readonly TouchedPath[], workingDirectory: string | undefined): string[] {
  const signals: string[] = [];
  for (const { path, mode } of touched) {
    if (!isInside(path, workingDirectory)) signals.push(`path.outside-workspace.${mode}`);
    if (!isResolved(path)) signals.push("path.unresolved");
  }
  return signals;
}

/** A file behind a symbolic link is touched under both names. */
function withRealPaths(
  touched: readonly TouchedPath[],
  realPaths: RealPaths | undefined,
): readonly TouchedPath[] {
  if (realPaths === undefined || realPaths.size === 0) return touched;
  return toDistinct(
    touched.flatMap(({ path, mode }) => {
      const real = realPaths.get(path);
      return real === undefined
        ? [{ path, mode }]
        : [
            { path, mode },
            { path: real, mode },
          ];
    }),
  );
}

function toDistinct(touched: readonly TouchedPath[]): TouchedPath[] {
  return [...new Map(touched.map((one) => [`${one.mode} ${one.path}`, one])).values()];
}

function notUnderstood(entry: ToolEntry | null): Classified {
  return {
    entry,
    effect: entry?.effect ?? "unknown",
    dataClass: entry?.dataClass ?? "unknown",
    action: entry?.action ?? "unknown",
    resource: null,
    findings: [unreadable("the request could not be read")],
    touched: [],
    command: null,
    operandPaths: [],
    signals: ["command.opaque"],
  };
}
