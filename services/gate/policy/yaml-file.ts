import type { Document, Node } from "yaml";
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import type { z } from "zod";
import type { PolicyProblem } from "./problem.ts";
import { salvage } from "./yaml-salvage.ts";

/** Problems that one file may report: nobody mends more at once, and each costs a walk to its line. */
const problemsMax = 100;

export type YamlPath = readonly PropertyKey[];

/** What a YAML file says, and where each part of it stands. */
export interface YamlFile<T> {
  readonly file: string;
  /** What fits the schema. */
  readonly value: T;
  /** False: entries that do not fit are reported, and left out of `value`. */
  readonly isWhole: boolean;
  /** The texts under `field` in each entry of the list `key`, of those that are left out too. */
  readonly declared: (key: string, field: string) => readonly Declared[];
  /** The line of the deepest part of the path that exists. */
  readonly lineOf: (path: YamlPath) => number;
}

/** A name that an entry of a list gives itself. */
export interface Declared {
  readonly name: string;
  readonly line: number;
}

/** Reads a YAML text, with every problem; null when nothing of it fits its schema. */
export function parseYamlFile<T>(
  file: string,
  text: string,
  schema: z.ZodType<T>,
  problems: PolicyProblem[],
): YamlFile<T> | null {
  try {
    return readDocument(file, text, schema, problems);
  } catch (error) {
    // The parser recurses: a text of brackets alone runs out of stack.
    const why = error instanceof RangeError ? "the text nests too deep" : String(error);
    problems.push({ file, line: 0, text: why });
    return null;
  }
}

function readDocument<T>(
  file: string,
  text: string,
  schema: z.ZodType<T>,
  problems: PolicyProblem[],
): YamlFile<T> | null {
  const lines = new LineCounter();
  const before = problems.length;
  // Its own check of doubled keys takes quadratic time.
  const document = parseDocument(text, {
    lineCounter: lines,
    uniqueKeys: false,
    merge: false,
    prettyErrors: false,
    logLevel: "silent",
  });
  const report = (offset: number, problem: string): void => {
    problems.push({ file, line: lines.linePos(offset).line, text: problem });
  };
  for (const { pos, message } of [...document.errors, ...document.warnings].slice(0, problemsMax)) {
    const why = lowerFirst(message.split("\n")[0] ?? "");
    report(startOfUnended(document, text, why, pos[0]) ?? pos[0], why);
  }
  if (problems.length > before) return null;
  reportRisky(document, report);
  if (problems.length > before) return null;
  const lineOf = (path: YamlPath): number => lineOfPath(document, lines, path);
  const raw: unknown = document.toJS({ maxAliasCount: 0 });
  const declared = (key: string, field: string): readonly Declared[] =>
    toTexts(raw, key, field).map(({ name, index }) => ({ name, line: lineOf([key, index, field]) }));
  const parsed = schema.safeParse(raw);
  if (parsed.success) return { file, value: parsed.data, isWhole: true, declared, lineOf };
  const { issues } = parsed.error;
  const found = issues.slice(0, problemsMax).flatMap((issue) => toProblems(file, issue, lineOf));
  problems.push(...found.slice(0, problemsMax));
  const rest = salvage(raw, issues, schema);
  if (rest === null) return null;
  return {
    file,
    value: rest.value,
    isWhole: false,
    declared,
    lineOf: ([key, index, ...inside]) =>
      key === undefined || typeof index !== "number"
        ? lineOf([key, index, ...inside].filter((one) => one !== undefined))
        : lineOf([key, rest.placeOf(key, index), ...inside]),
  };
}

function toTexts(raw: unknown, key: string, field: string): { name: string; index: number }[] {
  const list = isRecord(raw) ? raw[key] : null;
  if (!Array.isArray(list)) return [];
  return list.flatMap((one: unknown, index) => {
    const name = isRecord(one) ? one[field] : null;
    return typeof name === "string" ? [{ name, index }] : [];
  });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Where the quote or the bracket began that has no end: the parser only says where it gave up. */
function startOfUnended(document: Document, text: string, why: string, gaveUp: number): number | null {
  let start: number | null = null;
  const consider = (node: Node, isMeant: boolean): void => {
    const [from, to] = node.range ?? [gaveUp + 1, 0];
    if (isMeant && from <= gaveUp && gaveUp <= to + 1) start = from;
  };
  visit(document, {
    Scalar(_key, node) {
      const mark = text[node.range?.[0] ?? 0] ?? "";
      consider(node, /^missing closing .quote/.test(why) && (mark === '"' || mark === "'"));
    },
    Map(_key, node) {
      consider(node, node.flow === true && why.startsWith("flow map"));
    },
    Seq(_key, node) {
      consider(node, node.flow === true && why.startsWith("flow sequence"));
    },
  });
  return start;
}

/** What a reader of the file would not see: keys that are there twice, and parts that stand somewhere else. */
function reportRisky(document: Document, report: (offset: number, problem: string) => void): void {
  visit(document, {
    Node(_key, node) {
      const start = node.range?.[0] ?? 0;
      if (isAlias(node)) report(start, "aliases are not taken; write the value out");
      else if (node.anchor !== undefined)
        report(start, "anchors are not taken; write the value where it is used");
    },
    Map(_key, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const start = isNode(key) ? (key.range?.[0] ?? 0) : (map.range?.[0] ?? 0);
        if (!isScalar(key)) {
          report(start, "a key is a plain word");
          continue;
        }
        const name = String(key.value);
        if (seen.has(name)) report(start, `the key \`${name}\` is there twice`);
        seen.add(name);
      }
    },
  });
}

function toProblems(
  file: string,
  issue: z.core.$ZodIssue,
  lineOf: (path: YamlPath) => number,
): PolicyProblem[] {
  const at = (path: YamlPath, problem: string): PolicyProblem => ({
    file,
    line: lineOf(path),
    text: path.length === 0 ? problem : `${toPathText(path)}: ${problem}`,
  });
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, problemsMax).map((key) => at([...issue.path, key], "the key is not known"));
  }
  if (issue.code === "invalid_type" && issue.message.endsWith("received undefined")) {
    return [at(issue.path, "is missing")];
  }
  return [at(issue.path, lowerFirst(issue.message))];
}

/** `rules[2].when.tools` */
function toPathText(path: YamlPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${String(part)}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

function lineOfPath(document: Document, lines: LineCounter, path: YamlPath): number {
  let node: unknown = document.contents;
  let offset = isNode(node) ? startOf(node) : 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (pair === undefined) break;
      if (isNode(pair.key)) offset = startOf(pair.key);
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      if (!isNode(node)) break;
      offset = startOf(node);
    } else break;
  }
  return lines.linePos(offset).line;
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
