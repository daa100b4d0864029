import type { GateRequest, Json, JsonObject, ReasonCode } from "../../schemas/gate.ts";
import type { DataClass, EffectClass } from "../../schemas/generated/types.ts";
import { resolvePath } from "../platform/adapter-kit.ts";
import type { Bundle, Matchable, ToolEntry } from "./rules.ts";
import { findTool } from "./rules.ts";

/** Something that keeps the request from being understood. A finding is no error: it denies, and is recorded. */
export interface Finding {
  readonly rule: string;
  readonly reason: ReasonCode;
  readonly message: string;
}

/** A request with what the catalogue says of it. */
export interface Classified extends Matchable {
  readonly entry: ToolEntry | null;
  readonly effect: EffectClass;
  readonly dataClass: DataClass;
  readonly action: string;
  /** What the call acts on, as the plan names it: a command, a resolved path, an address. */
  readonly resource: string | null;
  readonly findings: readonly Finding[];
}

/** Most files that one call may name: each is resolved, and each rule looks at each of them. */
export const namedPathsMax = 1_000;
/** Longest path, and longest working folder; what Linux takes. */
export const pathMaxChars = 4_096;
/** Most characters of all paths of a call together, as resolved: a relative one brings the working folder with it. */
const allPathsMaxChars = 262_144;

/** A request is classified for its intent, its plan and its decision; it does not change in between. */
const classifiedBefore = new WeakMap<
  GateRequest,
  { readonly bundle: Bundle; readonly classified: Classified }
>();

/** Looks the tool up and reads its input. Never throws. */
export function classify(request: GateRequest, bundle: Bundle): Classified {
  const before = classifiedBefore.get(request);
  if (before?.bundle === bundle) return before.classified;
  const classified = readRequest(request, bundle);
  classifiedBefore.set(request, { bundle, classified });
  return classified;
}

function readRequest(request: GateRequest, bundle: Bundle): Classified {
  const entry = findTool(bundle, request.tool);
  const fieldTexts = toFieldTexts(request.input);
  const workingDirectory = request.working_directory ?? null;
  const findings: Finding[] = [];
  if (entry === null) {
    findings.push({
      rule: "classify.tool-unknown",
      reason: "TOOL_UNKNOWN",
      message: `the tool \`${request.tool}\` is not in the catalogue; ask your platform team to list it`,
    });
  }
  const named = entry === null ? [] : readResource(entry, request.input, fieldTexts, findings);
  if (holdsPrototypeKey(request.input)) {
    findings.push(unreadable("the input has a key named `__proto__`"));
  }
  const spelled = entry === null ? [] : toSpelledPaths(entry, named);
  const excess = toExcess(spelled, request.working_directory);
  if (excess !== null) findings.push(unreadable(excess));
  const paths = excess === null ? spelled.map((path) => resolvePath(request.working_directory, path)) : [];
  let texts: readonly string[] | null = null;
  return {
    entry,
    effect: entry?.effect ?? "unknown",
    dataClass: entry?.dataClass ?? "unknown",
    action: entry?.action ?? "unknown",
    resource: excess === null ? (paths[0] ?? named[0] ?? null) : null,
    findings,
    fieldTexts,
    paths,
    workingDirectory,
    allTexts: () => (texts ??= collectTexts(request.input)),
  };
}

function unreadable(message: string): Finding {
  return { rule: "classify.input-unreadable", reason: "INPUT_UNREADABLE", message };
}

/** The texts that name the resource; a list of words is one text. */
function readResource(
  entry: ToolEntry,
  input: JsonObject,
  fieldTexts: ReadonlyMap<string, string>,
  findings: Finding[],
): string[] {
  const { kind, fields, required } = entry.resource;
  const named: string[] = [];
  for (const field of fields) {
    if (!Object.hasOwn(input, field)) continue;
    const text = fieldTexts.get(field);
    const isList = Array.isArray(input[field]);
    if (text === undefined || (isList && kind !== "command")) {
      findings.push(unreadable(`the input field \`${field}\` is not a text`));
    } else if (text.includes("\0")) {
      findings.push(unreadable(`the input field \`${field}\` holds a NUL character`));
    } else if (text !== "") {
      named.push(text);
    }
  }
  if (required && named.length === 0 && findings.length === 0) {
    findings.push(unreadable(`the input names none of: ${fields.join(", ")}`));
  }
  return named;
}

/** The files that the input names, as it spells them; one more than may be named, when there are too many. */
function toSpelledPaths(entry: ToolEntry, named: readonly string[]): string[] {
  switch (entry.resource.kind) {
    case "path":
      return [...named];
    case "patch":
      return toPatchPaths(named);
    default:
      return [];
  }
}

/** The files that patches name in their headers. */
function toPatchPaths(patches: readonly string[]): string[] {
  const paths = new Set<string>();
  for (const patch of patches) {
    const headers = patch.matchAll(
      /^[ \t]*\*\*\* (?:Add File|Update File|Delete File|Move to):[ \t]*([^\n]*)$/gm,
    );
    for (const [, spelled = ""] of headers) {
      const path = spelled.trim();
      if (path !== "") paths.add(path);
      if (paths.size > namedPathsMax) return [...paths];
    }
  }
  return [...paths];
}

/**
 * What is too much of the named files to be judged in time, before any is resolved; null when nothing is.
 * INVARIANT: no call keeps the others waiting by what it names (services/gate/classify.test.ts).
 */
function toExcess(spelled: readonly string[], workingDirectory = ""): string | null {
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

function toFieldTexts(input: JsonObject): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [field, value] of Object.entries(input)) {
    if (typeof value === "string") texts.set(field, value);
    else if (Array.isArray(value) && value.every((one) => typeof one === "string"))
      texts.set(field, value.join(" "));
  }
  return texts;
}

function collectTexts(input: JsonObject): string[] {
  const texts: string[] = [];
  walk(input, (one) => {
    if (typeof one === "string") texts.push(one);
    return false;
  });
  return texts;
}

/** A key that readers of JSON treat in different ways: what runs could be another thing than what was judged. */
function holdsPrototypeKey(input: JsonObject): boolean {
  return walk(input, (one) => typeof one === "object" && one !== null && Object.hasOwn(one, "__proto__"));
}

/** Visits each value until a visit says that it found what it looks for; whether one did. */
function walk(input: Json, visit: (one: Json) => boolean): boolean {
  const open: Json[] = [input];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (visit(one)) return true;
    if (typeof one !== "object" || one === null) continue;
    // One by one: as arguments of one call a long list would not fit on the stack.
    for (const child of Object.values<Json>(one)) open.push(child);
  }
  return false;
}
