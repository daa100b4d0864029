import { beforeAll, describe, expect, it } from "vitest";
import { toClimb } from "../classify-paths.ts";
import { toNamed } from "./hidden-reads.ts";
import { loadBashParser } from "./load-bash-parser.ts";
import { parseCommand } from "./parse-command.ts";
import type { ParsedCommand } from "./parsed-command.ts";
import { isSecretPath, toDeleteIntents, toReadIntents, toWriteIntents } from "./path-intents.ts";
import { resolvePath } from "./path-words.ts";
import type { BashParser } from "./syntax-tree.ts";
import { namesRelease } from "./task-names.ts";
import { MAX_TEXT, refuseText } from "./text-guards.ts";
import { classifyVariable } from "./variable-table.ts";

let parser: BashParser;
beforeAll(async () => {
  parser = await loadBashParser();
});
const kinds = (text: string, by = parser): string[] =>
  parseCommand(by, text, { cwd: "/project" }).opaque.map(({ kind }) => kind);

const nothing: ParsedCommand = {
  commands: [],
  writes: [],
  reads: [],
  unresolvedReads: [],
  unknownReads: [],
  operands: [],
  assignments: [],
  opaque: [],
};

describe("hostile text", () => {
  it("beyond the limit is refused before the grammar sees it", () => {
    const unused: BashParser = {
      parse: () => {
        throw new Error("the grammar was asked");
      },
    };
    const refused = (text: string): string[] =>
      parseCommand(unused, text, { cwd: "/project" }).opaque.map(({ kind }) => kind);
    expect(refused("a".repeat(1 << 20))).toEqual(["too_large"]);
    expect(refused("$(".repeat(10_000) + "rm" + ")".repeat(10_000))).toEqual(["too_deep"]);
    expect(refused("$(".repeat(MAX_TEXT / 2))).toEqual(["too_deep"]);
    expect(refused("rm\0x")).toEqual(["control_character"]);
    expect(refused("rm\r\nls")).toEqual(["control_character"]);
    expect(refused("rm\u00a0x")).toEqual(["lookalike_character"]);
    expect(refused("rm \ufffd")).toEqual(["lookalike_character"]);
    expect(refused(">".repeat(MAX_TEXT))).toEqual(["too_large"]);
    expect(refused("f() ".repeat(10_000))).toEqual(["too_deep"]);
    expect(refused("r\\\nm x")).toEqual(["grammar_mismatch"]);
  });

  it("of any shape ends as opaque, or with every program found", async () => {
    // By work alone: on a busy machine the time that is up would be another kind of refusal.
    const patient = await loadBashParser({ spentMs: () => 0, maxParseMs: 1 });
    let nested = "rm x";
    for (let depth = 0; depth < 11; depth += 1) nested = `sh -c '${nested.replaceAll("'", "'\\''")}'`;
    expect(kinds(nested, patient)).toEqual(["too_large"]);
    expect(kinds("env ".repeat(16_000), patient)).toEqual(["too_deep"]);
    expect(kinds("a | ".repeat(12_000) + "b", patient)).toContain("too_large");
    expect(kinds("if a; then ".repeat(1_000) + "b; " + "fi; ".repeat(1_000), patient)).toEqual(["too_deep"]);
    expect(kinds('"$x"'.repeat(16_000))).not.toEqual([]);
    expect(kinds("'".repeat(MAX_TEXT - 1))).not.toEqual([]);
    expect(kinds("`".repeat(MAX_TEXT - 1))).not.toEqual([]);
    expect(kinds("{".repeat(MAX_TEXT))).toEqual(["too_deep"]);
  });

  it("does not keep the parser from reading the next command", () => {
    kinds("`".repeat(60_000));
    expect(parseCommand(parser, "rm x", { cwd: "/project" }).commands.map(({ program }) => program)).toEqual([
      "rm",
    ]);
  });

  it("past its budget is given up as no valid bash, and the next command is read as ever", async () => {
    let ms = 0;
    const hurried = await loadBashParser({ spentMs: () => (ms += 100), maxParseMs: 250 });
    const patient = await loadBashParser({ spentMs: () => 0, maxParseMs: 1 });
    const broken = "[a] ".repeat(500);
    const kindsBy = (one: BashParser): string[] =>
      parseCommand(one, broken, { cwd: "/project" }).opaque.map(({ kind }) => kind);
    expect(kindsBy(hurried)).toEqual(["syntax_error"]);
    expect(kindsBy(patient)).toEqual(kindsBy(hurried));
    expect(parseCommand(hurried, "rm x", { cwd: "/project" }).opaque).toEqual([]);
  });

  it.each([
    ["brackets in a row", "[a] ".repeat(16_000)],
    ["here-documents in one line", "cat <<A <<B\nx\nA\ny\nB\n".repeat(3_000)],
    ["closings of nothing", `f() { ${")) $".repeat(16_000)}`],
    ["a long text that is run many times", `A='${"a b; ".repeat(8_000)}'; ${'sh -c "$A"; '.repeat(1_600)}`],
    ["a broken text that is run many times", `A='${"[a] ".repeat(9_000)}'; ${'sh -c "$A"; '.repeat(1_600)}`],
    ["many broken texts", `${`sh -c '${"[a] ".repeat(200)}'; `.repeat(70)}`],
    ["a pipe of many", `${"a | ".repeat(16_000)}b`],
  ])("hands the grammar no more than it may cost: %s", (_, text) => {
    let chars = 0;
    let broken = 0;
    const counting: BashParser = {
      parse(script) {
        chars += script.length;
        const parsed = parser.parse(script);
        if (!parsed.ok) broken += 1;
        return parsed;
      },
    };
    const { opaque } = parseCommand(counting, text, { cwd: "/project" });
    expect(opaque).not.toEqual([]);
    // Work and not time, since the machine may be busy. What is no valid bash is what takes the grammar long.
    expect(broken).toBeLessThanOrEqual(3);
    expect(chars).toBeLessThanOrEqual(2 * MAX_TEXT);
  });

  /** Texts that repeat one unit, so long that whatever takes quadratic time for them takes minutes. */
  const repeats = [
    ...[
      ".ssh/",
      ".ssh/x_",
      "a/",
      "a_key/",
      ".env.",
      "x.pem/",
      ".git/",
      "../",
      "id_rsa/",
      "/proc/",
      "a:",
      "a.",
      "-a=",
      "~/",
    ],
    ...[".env ", "{a,", "[a", "*a", "=a", "$a", "'", "@a", "%20", "s/a/", "a\t", "#"],
  ];
  const judged: readonly (readonly [string, (text: string) => unknown])[] = [
    ["names of secrets", isSecretPath],
    ["files that are read", (text) => toReadIntents([text])],
    ["files that are written", (text) => toWriteIntents([text])],
    ["files that are deleted", (text) => toDeleteIntents([text])],
    ["values of options", (text) => classifyVariable("NODE_OPTIONS", text)],
    ["values of folders", (text) => classifyVariable("PYTHONPATH", text)],
    ["values of programs", (text) => classifyVariable("CC", text)],
    ["globs of names", toNamed],
    ["texts at the door", refuseText],
    ["words with a way up", (text) => toClimb("/project", `${text}/../x`)],
    ["paths", (text) => resolvePath("/project", text)],
    [
      "names of tasks",
      (text) => namesRelease({ ...nothing, opaque: [{ kind: "script_file", detail: "", files: [text] }] }),
    ],
  ];
  it.each(judged)(
    "is judged in time that grows as it does: %s",
    (_, judge) => {
      for (const unit of repeats) judge(unit.repeat(Math.ceil(300_000 / unit.length)));
    },
    60_000,
  );
});
