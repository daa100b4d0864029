import { beforeAll, describe, expect, it } from "vitest";
import { readCorpus } from "../../../test/corpus/commands/corpus.ts";
import { toIntents } from "./command-intents.ts";
import { loadSqlParser } from "../sql/load-sql-parser.ts";
import type { SqlParser } from "../sql/load-sql-parser.ts";
import { judgeSqlOf } from "../sql/sql-in-commands.ts";
import { loadBashParser } from "./load-bash-parser.ts";
import { parseCommand } from "./parse-command.ts";
import type { ParsedCommand } from "./parsed-command.ts";
import type { BashParser } from "./syntax-tree.ts";

let parser: BashParser;
let sql: SqlParser;
beforeAll(async () => {
  parser = await loadBashParser();
  sql = await loadSqlParser();
});
const parse = (text: string, home?: string): ParsedCommand =>
  parseCommand(parser, text, home === undefined ? { cwd: "/project" } : { cwd: "/project", home });
const sorted = (items: Iterable<string>): string[] => [...new Set(items)].sort();

const corpus = readCorpus();

describe.each([...new Set(corpus.map(({ family }) => family))])("the corpus family %s", (family) => {
  it.each(corpus.filter((command) => command.family === family))("is read rightly: $text", (expected) => {
    const parsed = parse(expected.text, "/home/u");
    const programs = sorted(parsed.commands.map(({ program }) => program));
    const writes = sorted(parsed.writes.map(({ path }) => path));
    expect({ isOpaque: parsed.opaque.length > 0, why: parsed.opaque }).toMatchObject({
      isOpaque: expected.opaque,
    });
    if (expected.opaque) {
      expect(programs).toEqual(expect.arrayContaining([...expected.programs]));
      expect(writes).toEqual(expect.arrayContaining([...expected.writes]));
    } else {
      expect(programs).toEqual(sorted(expected.programs));
      expect(writes).toEqual(sorted(expected.writes));
    }
    const isDestroying = parsed.commands.some((command) => judgeSqlOf(sql, command)?.isDestroying === true);
    const intents = sorted([
      ...toIntents(parsed, { workspace: "/project", home: "/home/u" }),
      ...(isDestroying ? ["infra.destroy"] : []),
    ]);
    const dangerous = expected.dangerous.filter((intent) => intent !== "none").sort();
    expect(intents).toEqual(expected.opaque ? expect.arrayContaining(dangerous) : dangerous);
  });
});

describe("a program that runs what a word of its own says", () => {
  it.each([
    "man -P 'rm x' ls",
    "man --pager='rm x' ls",
    "less '+!rm x' log",
    "more '+:!rm x' log",
    "zip a b -T --unzip-command='rm x'",
    "zip a b -T -TT 'rm x'",
    "proot rm x",
  ])("is opaque: %s", (text) => {
    expect(parse(text).opaque).not.toEqual([]);
  });

  it.each(["man git", "man -k push", "less +G log", "less -N log", "zip -r a.zip src"])(
    "is read without such a word: %s",
    (text) => {
      expect(parse(text).opaque).toEqual([]);
    },
  );
});
