import { toCodeSignals } from "./classify-code.ts";
import { createParse } from "./classify-command.ts";
import { readFiles } from "./classify-files.ts";
import { hasUnknownField, inputPartsMax, readParts, readResource, unreadable } from "./classify-input.ts";
import type { InputParts } from "./classify-input.ts";
import { isInside, isResolved, resolvePath, toPatchPaths } from "./classify-paths.ts";
import type { PatchPath } from "./classify-paths.ts";
import { nothingRead, toDistinct } from "./classify-reading.ts";
import type { Reading } from "./classify-reading.ts";
import { readShell, toSqlSignals } from "./classify-shell.ts";
import type { Reader } from "./classify-shell.ts";
import { readUrl, toUrlsInTexts, toUrlsOfCommand } from "./classify-urls.ts";
import type { AskedCall, Classified, Classify, Finding, RealPath, TouchedPath } from "./classified.ts";
import type { Policy, ToolEntry } from "./policy/policy.ts";
import { findTool } from "./policy/tool-pattern.ts";
import type { DeclaredPrograms } from "./shell/declared-programs.ts";
import type { Climb, ParsedCommand } from "./shell/parsed-command.ts";
import { toReadIntents, toWriteIntents } from "./shell/path-intents.ts";
import type { BashParser } from "./shell/syntax-tree.ts";
import { testSignals } from "./signals.ts";
import { classifySql } from "./sql/classify-sql.ts";
import type { SqlParser } from "./sql/load-sql-parser.ts";

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
  return (request, policy, realPaths) => {
    const entry = findTool(policy.tools, request.tool);
    try {
      return readRequest(request, policy, entry, realPaths, reader);
    } catch {
      return notUnderstood(entry);
    }
  };
}

type RealPaths = ReadonlyMap<string, string>;

function readRequest(
  request: AskedCall,
  policy: Policy,
  entry: ToolEntry | null,
  realPaths: RealPaths | undefined,
  reader: Reader,
): Classified {
  const { input, working_directory: workingDirectory } = request;
  const parts = readParts(input);
  const findings = toFindings(request, entry, parts);
  const named = entry === null ? [] : readResource(entry, input, findings);
  const reading =
    entry === null
      ? nothingRead
      : readTouched(request, entry, named, parts, { ...reader, programs: policy.programs });
  if (reading.excess !== null) findings.push(unreadable(reading.excess));
  else if (entry?.resource.kind === "patch" && named.length > 0 && reading.touched.length === 0)
    findings.push(unreadable("the patch names no file"));
  const climbs = reading.climbs ?? [];
  const touched = withRealPaths(reading.touched, climbs, realPaths);
  const { command } = reading;
  const texts = parts.texts.map(({ text }) => text);
  let urls: readonly URL[] | null = null;
  const tested = testSignals(policy.signals, {
    tool: request.tool,
    input,
    texts,
    touched,
    workingDirectory,
    command,
    urls: () => (urls ??= toUrls(request.tool, entry, named, command, texts)),
  });
  const signals = new Set([
    ...reading.signals,
    ...toLinkSignals(touched, reading.touched),
    ...toPathSignals(touched, workingDirectory),
    ...tested.held,
    ...(command === null ? [] : toCodeSignals(command, { workspace: workingDirectory, realPaths })),
  ]);
  if (entry?.tool.endsWith("*") === true) signals.add("tool.wildcard");
  if (entry !== null && !parts.isTooLarge && hasUnknownField(entry, input))
    signals.add("input.unknown-field");
  return {
    entry,
    effect: entry?.effect ?? "unknown",
    dataClass: entry?.dataClass ?? "unknown",
    action: entry?.action ?? "unknown",
    resource: reading.excess === null ? (reading.named[0] ?? null) : null,
    findings: [...findings, ...tested.findings],
    touched,
    ...toLinks(
      [
        ...reading.touched.map(({ path }) => path),
        ...reading.operandPaths,
        ...climbs.map(({ spelled }) => spelled),
      ],
      realPaths,
    ),
    ...(climbs.length === 0 ? {} : { climbs }),
    command,
    operandPaths: reading.operandPaths,
    signals: [...signals].sort(),
  };
}

/** What of the paths leads elsewhere. */
function toLinks(paths: readonly string[], realPaths: RealPaths | undefined): Pick<Classified, "links"> {
  if (realPaths === undefined || realPaths.size === 0) return {};
  const links = [...new Set(paths)].sort().flatMap((path): RealPath[] => {
    const real = realPaths.get(path);
    return real === undefined ? [] : [{ path, real }];
  });
  return links.length === 0 ? {} : { links };
}

function toFindings(request: AskedCall, entry: ToolEntry | null, parts: InputParts): Finding[] {
  const findings: Finding[] = [];
  if (entry === null) {
    findings.push({
      rule: "classify.tool-unknown",
      reason: "TOOL_UNKNOWN",
      message: `the tool \`${request.tool}\` is not in the catalogue; ask your platform team to list it`,
    });
  }
  if (request.working_directory?.includes("\0") === true)
    findings.push(unreadable("the working folder holds a NUL character"));
  if (parts.holdsPrototypeKey) findings.push(unreadable("the input has a key named `__proto__`"));
  if (parts.isTooLarge)
    findings.push(
      unreadable(`the input holds more than ${String(inputPartsMax)} values; split it into several calls`),
    );
  const problems = entry === null || parts.isTooLarge ? [] : entry.inputProblems(request.input);
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
  request: AskedCall,
  entry: ToolEntry,
  named: readonly string[],
  parts: InputParts,
  reader: Reader & { readonly programs: DeclaredPrograms | undefined },
): Reading {
  switch (entry.resource.kind) {
    case "command":
      return readShell(request, named, reader, reader.programs);
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
        parts,
        reader.home,
      );
    case "patch":
      return readFiles(request, entry, toPatchFiles(request, named, reader.home), parts, reader.home);
    case "url":
    case "text":
      return { ...readFiles(request, entry, toEntered(request), parts, reader.home), named };
  }
}

/** The files of a patch, below the folder that the call changes to as well. */
function toPatchFiles(
  { input, working_directory: here }: AskedCall,
  named: readonly string[],
  home: string | undefined,
): PatchPath[] {
  const paths = toPatchPaths(named);
  const given = ["workdir", "cwd", "working_directory"].flatMap((field) => {
    const value = Object.hasOwn(input, field) ? input[field] : undefined;
    return typeof value === "string" && value !== "" ? [value] : [];
  });
  const entered = named.flatMap((text) => {
    const before = text.slice(0, Math.max(0, text.search(/\*\*\* |^(?:---|diff) /m)));
    return [...before.matchAll(/(?:^|[\s;&|(])(?:cd|pushd)\s+(?:--\s+)?["']?([^\s"';&|)]+)/g)].map(
      ([, to = ""]) => to,
    );
  });
  const folders = [...given, ...entered].slice(0, 16).map((folder) => resolvePath(here, home, folder));
  return [
    ...paths,
    ...folders.flatMap((folder) =>
      paths.map(({ path, isDelete }) => ({ path: resolvePath(folder, home, path), isDelete })),
    ),
  ];
}

/** The folder that a session is about to work in. */
function toEntered({ tool, input }: AskedCall): PatchPath[] {
  const path = tool === "workspace.enter" && Object.hasOwn(input, "path") ? input["path"] : undefined;
  return typeof path === "string" && path !== "" ? [{ path, isDelete: false }] : [];
}

function toUrls(
  tool: string,
  entry: ToolEntry | null,
  named: readonly string[],
  command: ParsedCommand | null,
  texts: readonly string[],
): readonly URL[] {
  if (command !== null) return toUrlsOfCommand(command);
  if (entry?.resource.kind === "url") {
    const own = named.map((text) => readUrl(entry.resource.fields.join(", "), text));
    return tool.startsWith("mcp.") ? [...own, ...toUrlsInTexts(texts)] : own;
  }
  return tool.startsWith("mcp.") ? toUrlsInTexts(texts) : [];
}

function toPathSignals(touched: readonly TouchedPath[], workingDirectory: string | undefined): string[] {
  const signals: string[] = [];
  for (const { path, mode } of touched) {
    if (!isInside(path, workingDirectory)) signals.push(`path.outside-workspace.${mode}`);
    if (!isResolved(path)) signals.push("path.unresolved");
  }
  return signals;
}

/** What it means that links lead to the files that they lead to. */
function toLinkSignals(touched: readonly TouchedPath[], spelled: readonly TouchedPath[]): string[] {
  if (touched.length === spelled.length) return [];
  const ofMode = (mode: TouchedPath["mode"]): string[] =>
    touched.flatMap((one) => (one.mode === mode ? [one.path] : []));
  return [...toReadIntents(ofMode("read")), ...toWriteIntents(ofMode("write"))];
}

/** A file behind a symbolic link is touched under both names, and one that a spelling leads to as well. */
function withRealPaths(
  touched: readonly TouchedPath[],
  climbs: readonly Climb[],
  realPaths: RealPaths | undefined,
): readonly TouchedPath[] {
  if (realPaths === undefined || realPaths.size === 0) return touched;
  const leads = climbs.filter(({ spelled }) => realPaths.has(spelled));
  return toDistinct(
    touched.flatMap(({ path, mode }) => {
      const found = [
        realPaths.get(path),
        ...leads.filter((one) => one.path === path).map(({ spelled }) => realPaths.get(spelled)),
      ];
      return [path, ...found.filter((real) => real !== undefined)].map((one) => ({ path: one, mode }));
    }),
  );
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
    signals: ["command.opaque", "command.unbound"],
  };
}
