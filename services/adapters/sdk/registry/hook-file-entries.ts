import type { Json, JsonObject } from "../json.ts";
import { isJsonObject } from "../json.ts";
import type { HookPoint, ReplyKey } from "./hook-points.ts";
import { hookPoints, isPolicyPoint, voices } from "./hook-points.ts";
import type { Condition, Match } from "./matchers.ts";

/** One handler of a configuration file. */
export interface HookFileEntry {
  readonly name: string;
  readonly point: HookPoint;
  readonly observes: boolean;
  readonly match?: Match;
  readonly timeoutMs?: number;
  readonly action:
    | { readonly kind: "reply"; readonly reply: JsonObject }
    | { readonly kind: "command"; readonly argv: readonly [string, ...string[]] }
    | { readonly kind: "module"; readonly path: string; readonly name: string };
}

/** Everything that is wrong with a configuration file. */
export class HookFileError extends Error {
  override readonly name = "HookFileError";
  readonly problems: readonly string[];
  constructor(file: string, problems: readonly string[]) {
    super(`${file}: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

const entryKeys = [
  "name",
  "point",
  "observe",
  "tools",
  "where",
  "timeout_ms",
  "reply",
  "command",
  "module",
  "export",
];
const tests = [
  "present",
  "equals",
  "one_of",
  "contains",
  "starts_with",
  "ends_with",
  "like",
  "above",
  "below",
] as const;

/** Reads a configuration file's text. Throws `HookFileError` with all problems at once. Pure. */
export function parseHookFile(text: string, file: string): readonly HookFileEntry[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new HookFileError(file, [`not JSON: ${error instanceof Error ? error.message : ""}`]);
  }
  const problems: string[] = [];
  if (!isJsonObject(parsed)) throw new HookFileError(file, ["not an object"]);
  if (parsed["version"] !== 1) problems.push('"version" has to be 1');
  for (const key of Object.keys(parsed))
    if (key !== "version" && key !== "hooks") problems.push(`unknown key "${key}"`);
  const hooks = parsed["hooks"];
  if (!Array.isArray(hooks)) throw new HookFileError(file, [...problems, '"hooks" is not a list']);
  const entries = (hooks as readonly Json[]).map((one, at) =>
    readEntry(one, `hooks[${String(at)}]`, problems),
  );
  const names = entries.map((one) => one?.name);
  for (const [at, name] of names.entries())
    if (name !== undefined && names.indexOf(name) !== at) problems.push(`two handlers are named "${name}"`);
  if (problems.length > 0) throw new HookFileError(file, problems);
  return entries.filter((one) => one !== null);
}

function readEntry(one: Json, at: string, problems: string[]): HookFileEntry | null {
  const wrong = (what: string): null => {
    problems.push(`${at}: ${what}`);
    return null;
  };
  if (!isJsonObject(one)) return wrong("not an object");
  const before = problems.length;
  for (const key of Object.keys(one)) if (!entryKeys.includes(key)) wrong(`unknown key "${key}"`);
  const { name, point, observe, timeout_ms: timeoutMs } = one;
  if (typeof name !== "string" || name === "") wrong('"name" is missing');
  if (typeof point !== "string" || !(hookPoints as readonly string[]).includes(point)) {
    return wrong(`"point" is none of ${hookPoints.join(", ")}`);
  }
  if (observe !== undefined && typeof observe !== "boolean") wrong('"observe" is true or false');
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0))
    wrong('"timeout_ms" is a positive number');
  const action = readAction(one, point as HookPoint, wrong);
  const match = readMatch(one, wrong);
  if (action === null || problems.length > before) return null;
  return {
    name: name as string,
    point: point as HookPoint,
    observes: observe === true,
    action,
    ...(match === undefined ? {} : { match }),
    ...(timeoutMs === undefined ? {} : { timeoutMs: timeoutMs as number }),
  };
}

function readAction(
  one: JsonObject,
  point: HookPoint,
  wrong: (what: string) => null,
): HookFileEntry["action"] | null {
  const given = ["reply", "command", "module"].filter((key) => one[key] !== undefined);
  if (given.length !== 1) return wrong('exactly one of "reply", "command" and "module" says what it does');
  if (one["export"] !== undefined && given[0] !== "module") wrong('"export" goes with "module"');
  switch (given[0]) {
    case "reply": {
      const reply = one["reply"] as Json;
      if (!isJsonObject(reply) || Object.keys(reply).length === 0)
        return wrong('"reply" is an object that says something');
      if (!isPolicyPoint(point)) return wrong(`nobody has a say at ${point}`);
      const { keys } = voices[point];
      const strange = Object.keys(reply).filter((key) => !keys.includes(key as ReplyKey));
      return strange.length > 0
        ? wrong(`a reply at ${point} has no "${strange.join('", "')}"`)
        : { kind: "reply", reply };
    }
    case "command": {
      const argv = one["command"];
      const isArgv = Array.isArray(argv) && argv.length > 0 && argv.every((word) => typeof word === "string");
      return isArgv
        ? { kind: "command", argv: argv as unknown as [string, ...string[]] }
        : wrong('"command" is a list: the program and its arguments; no shell reads it');
    }
    default: {
      const { module: path, export: name = "default" } = one;
      return typeof path === "string" && typeof name === "string"
        ? { kind: "module", path, name }
        : wrong('"module" is a path, "export" a name');
    }
  }
}

function readMatch(one: JsonObject, wrong: (what: string) => null): Match | undefined {
  const { tools, where } = one;
  if (tools !== undefined && !(Array.isArray(tools) && tools.every((tool) => typeof tool === "string")))
    wrong('"tools" is a list of names or patterns');
  if (where !== undefined && !Array.isArray(where)) wrong('"where" is a list of conditions');
  const conditions = Array.isArray(where)
    ? (where as readonly Json[])
        .map((condition) => readCondition(condition, wrong))
        .filter((read) => read !== null)
    : undefined;
  if (tools === undefined && conditions === undefined) return undefined;
  return {
    ...(tools === undefined ? {} : { tools: tools as readonly string[] }),
    ...(conditions === undefined ? {} : { where: conditions }),
  };
}

function readCondition(condition: Json, wrong: (what: string) => null): Condition | null {
  if (!isJsonObject(condition)) return wrong("a condition is an object");
  const { field, ...rest } = condition;
  if (typeof field !== "string" || !field.startsWith("/"))
    return wrong('"field" is a JSON pointer such as "/command"');
  const [test, ...more] = Object.keys(rest);
  if (test === undefined || more.length > 0) return wrong(`a condition has one of ${tests.join(", ")}`);
  const value = rest[test] as Json;
  switch (test as (typeof tests)[number]) {
    case "present":
      return typeof value === "boolean"
        ? { field, is: { present: value } }
        : wrong('"present" is true or false');
    case "equals":
      return { field, is: { equals: value } };
    case "one_of":
      return Array.isArray(value)
        ? { field, is: { oneOf: value as readonly Json[] } }
        : wrong('"one_of" is a list');
    case "contains":
      return typeof value === "string" ? { field, is: { contains: value } } : wrong('"contains" is a text');
    case "starts_with":
      return typeof value === "string"
        ? { field, is: { startsWith: value } }
        : wrong('"starts_with" is a text');
    case "ends_with":
      return typeof value === "string" ? { field, is: { endsWith: value } } : wrong('"ends_with" is a text');
    case "like":
      return typeof value === "string" ? { field, is: { like: value } } : wrong('"like" is a text');
    case "above":
      return typeof value === "number" ? { field, is: { above: value } } : wrong('"above" is a number');
    case "below":
      return typeof value === "number" ? { field, is: { below: value } } : wrong('"below" is a number');
    default:
      return wrong(`a condition has no "${test}": it has one of ${tests.join(", ")}`);
  }
}
