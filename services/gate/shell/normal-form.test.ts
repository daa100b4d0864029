import { beforeAll, describe, expect, it } from "vitest";
import { loadBashParser } from "./load-bash-parser.ts";
import { isAllowed, isDenied, toNormalForm } from "./normal-form.ts";
import { parseCommand } from "./parse-command.ts";
import type { ParsedCommand } from "./parsed-command.ts";
import type { BashParser } from "./syntax-tree.ts";

let parser: BashParser;
beforeAll(async () => {
  parser = await loadBashParser();
});
const parse = (text: string): ParsedCommand => parseCommand(parser, text, { cwd: "/project" });

describe("one normal form for allow and deny", () => {
  it.each(["sudo -n id", "/usr/bin/sudo -n id", "\\sudo -n id", "'su''do' -n id", "X=sudo; $X -n id"])(
    "denies %s by the program that it resolves to",
    (text) => {
      expect(isDenied(parse(text), [["sudo"]])).toBe(true);
    },
  );

  it.each([
    "git fetch && git clean -fd",
    "sh -c 'git clean -fd'",
    "nohup git -C sub clean -fd",
    "git clean $FLAGS",
  ])("denies %s because one part of it is denied", (text) => {
    expect(isDenied(parse(text), [["git", "clean"]])).toBe(true);
  });

  it("allows only when every part is allowed, wrappers too", () => {
    const allowed = [["git", "fetch"], ["git", "status"], ["ls"]] as const;
    expect(isAllowed(parse("git fetch && git status; ls -la"), allowed)).toBe(true);
    expect(isAllowed(parse("git fetch && git clean -fd"), allowed)).toBe(false);
    expect(isAllowed(parse("nohup git fetch"), allowed)).toBe(false);
    expect(isAllowed(parse("nohup git fetch"), [...allowed, ["nohup"]])).toBe(true);
    expect(isAllowed(parse("git $VERB"), allowed)).toBe(false);
    expect(isAllowed(parse("ls | sh"), [...allowed, ["sh"]])).toBe(false);
    expect(isAllowed(parse(""), allowed)).toBe(false);
  });

  it("does not allow a file that only has the name of an allowed program", () => {
    expect(isAllowed(parse("./git fetch"), [["git", "fetch"]])).toBe(false);
    expect(isAllowed(parse("/tmp/ls"), [["ls"]])).toBe(false);
  });

  it("does not deny what only mentions the words", () => {
    expect(isDenied(parse('git commit -m "push --force"'), [["git", "push"]])).toBe(false);
    expect(isDenied(parse("echo sudo rm -rf /"), [["sudo"], ["rm"]])).toBe(false);
  });

  it("shows words that are not fixed as unknown", () => {
    expect(parse('/bin/cp a "$X"').commands.map(toNormalForm)).toEqual([["cp", "a", undefined]]);
  });

  it("names the files whose content runs, so that their digests can be bound", () => {
    expect(parse("sh script.sh").operands).toEqual(["/project/script.sh"]);
    expect(parse("cd sub && ./run.sh").operands).toEqual(["/project/sub/run.sh"]);
    expect(parse(". ./env.sh; python3 tool.py").operands).toEqual(["/project/env.sh", "/project/tool.py"]);
  });
});
