import { describe, expect, it } from "vitest";
import { toCommand } from "./to-command.ts";

describe("the command in what the server runs", () => {
  it.each([
    ["/bin/bash -lc 'echo hi > out.txt'", "echo hi > out.txt"],
    ["/bin/bash -lc ls", "ls"],
    [`/bin/bash -lc 'it'"'"'s'`, "it's"],
    [`/bin/bash -lc 'it'\\''s'`, "it's"],
    [`/usr/bin/zsh -lc "echo \\"\\$HOME\\" it's"`, `echo "$HOME" it's`],
    ["bash -c 'a\nb'", "a\nb"],
    [`/bin/bash -lc "bash -lc 'rm x'"`, "bash -lc 'rm x'"],
  ])("%s is the word that its shell gets", (command, asked) => {
    expect(toCommand(command)).toBe(asked);
  });

  it.each([
    "ls -l",
    "/bin/bash -lc 'a' b",
    "/bin/bash -lc 'a",
    '/bin/bash -lc "$HOME"',
    "/bin/bash -lc a;b",
    "/bin/bash script.sh",
    "/bin/bash -lc ''",
    "python3 -c 'x'",
  ])("%s stays as it is", (command) => {
    expect(toCommand(command)).toBe(command);
  });
});
