import type { Document, Node } from "yaml";
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import type { z } from "zod";
import type { PolicyProblem } from "./problem.ts";

/** Problems that one file may report: nobody mends more at once, and each costs a walk to its line. */
const problemsMax = 100;

export type YamlPath = readonly PropertyKey[];

/** A YAML file that fits its schema, and where each part of it stands. */
export interface YamlFile<T> {
  readonly file: string;
  readonly value: T;
  /** The line of the deepest part of the path that exists. */
  readonly lineOf: (path: YamlPath) => number;
}

/** Reads a YAML text; null, with every problem, when it is not as its schema says. */
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
  for (const { pos, message } of [...document.errors, ...document.warnings]) {
    report(pos[0], lowerFirst(message.split("\n")[0] ?? ""));
  }
  if (problems.length > before) return null;
  reportRisky(document, report);
  if (problems.length > before) return null;
  const lineOf = (path: YamlPath): number => lineOfPath(document, lines, path);
  const parsed = schema.safeParse(document.toJS({ maxAliasCount: 0 }));
  if (parsed.success) return { file, value: parsed.data, lineOf };
  const found = parsed.error.issues.slice(0, problemsMax).flatMap((issue) => toProblems(file, issue, lineOf));
  problems.push(...found.slice(0, problemsMax));
  return null;
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
