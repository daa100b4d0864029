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
  const paths = entry === null ? [] : toPaths(entry, named, request.working_directory);
  let texts: readonly string[] | null = null;
  return {
    entry,
    effect: entry?.effect ?? "unknown",
    dataClass: entry?.dataClass ?? "unknown",
    action: entry?.action ?? "unknown",
    resource: paths[0] ?? named[0] ?? null,
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

function toPaths(entry: ToolEntry, named: readonly string[], workingDirectory: string | undefined): string[] {
  switch (entry.resource.kind) {
    case "path":
      return named.map((path) => resolvePath(workingDirectory, path));
    case "patch":
      return named.flatMap(toPatchPaths).map((path) => resolvePath(workingDirectory, path));
    default:
      return [];
  }
}

/** The files that a patch names in its headers. */
function toPatchPaths(patch: string): string[] {
  const headers = patch.matchAll(
    /^[ \t]*\*\*\* (?:Add File|Update File|Delete File|Move to):[ \t]*([^\n]*)$/gm,
  );
  return [...new Set([...headers].map(([, path = ""]) => path.trim()).filter((path) => path !== ""))];
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
  const open: Json[] = [input];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (typeof one === "string") texts.push(one);
    else if (typeof one === "object" && one !== null) open.push(...Object.values<Json>(one));
  }
  return texts;
}

/** A key that readers of JSON treat in different ways: what runs could be another thing than what was judged. */
function holdsPrototypeKey(input: JsonObject): boolean {
  const open: Json[] = [input];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (typeof one !== "object" || one === null) continue;
    if (Object.hasOwn(one, "__proto__")) return true;
    open.push(...Object.values<Json>(one));
  }
  return false;
}
