import type { Document } from "yaml";
import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";

type YamlPath = readonly PropertyKey[];

/** A YAML file that fits its schema; `at` names file and line of a part of it. */
export interface YamlList<T> {
  readonly value: T;
  readonly at: (path: YamlPath) => string;
}

/** What a file that people write came to: its value, or every problem, each with file and line. */
export type YamlOutcome<T> =
  | { readonly ok: true; readonly list: YamlList<T> }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Reads a YAML text by its schema. Doubled keys and aliases are problems: a reader does not see what they do. */
export function parseYamlList<T>(file: string, text: string, schema: z.ZodType<T>): YamlOutcome<T> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, merge: false, prettyErrors: false });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    return {
      ok: false,
      problems: faults.map((one) => `${file}:${String(lines.linePos(one.pos[0]).line)}: ${one.message}`),
    };
  }
  const at = (path: YamlPath): string => `${file}:${String(lineOf(document, lines, path))}`;
  let plain: unknown;
  try {
    plain = document.toJS({ maxAliasCount: 0 });
  } catch {
    return { ok: false, problems: [`${file}:1: aliases are not taken; write the value out`] };
  }
  const parsed = schema.safeParse(plain);
  if (parsed.success) return { ok: true, list: { value: parsed.data, at } };
  return {
    ok: false,
    problems: parsed.error.issues.map(
      (issue) => `${at(issue.path)}: ${issue.path.map(String).join(".")}: ${issue.message}`,
    ),
  };
}

/** The line of the deepest part of the path that exists. */
function lineOf(document: Document, lines: LineCounter, path: YamlPath): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (pair === undefined) break;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    } else break;
  }
  return lines.linePos(offset).line;
}
