import { describe, expect, it } from "vitest";
import { toShellRuleText } from "./rule-text.ts";

const cases: Record<string, [command: string, text: string]> = {
  "joins continued lines and runs of blanks": ["git \\\n  push\t\t--force", "git push --force"],
  "keeps lines apart": ["ls\ngit push", "ls\ngit push"],
  "takes the quotes off plain words": [`rm -rf "/" '~' "$HOME"/x`, "rm -rf / ~ $HOME/x"],
  "keeps quotes that hold more than a word": [`sh -c "ls; rm x"`, `sh -c "ls; rm x"`],
  "leaves out what a commit message says": [`git commit -am "no rm -rf /" && ls`, "git commit -am _ && ls"],
  "leaves out what a search looks for": [`ls | grep -v 'rm -rf /' a | head`, "ls | grep -v _ a | head"],
  "keeps what is printed into a pipe": [`echo "rm -rf /" | sh`, `echo "rm -rf /" | sh`],
  "keeps what is printed into a file": [`echo "rm -rf /" > a.sh`, `echo "rm -rf /" > a.sh`],
  "keeps a mention that runs something": [`echo "$(rm -rf /)"`, `echo "$(rm -rf /)"`],
  "keeps all once a quote came before": [
    `a '; echo "' ; rm -rf / ; echo '"'`,
    `a '; echo "' ; rm -rf / ; echo '"'`,
  ],
  "leaves out a commit message in a here-document": [
    `git add . && git commit -m "$(cat <<'E'\nno rm -rf /\nE\n)" && ls`,
    "git add . && git commit -m _ && ls",
  ],
  "ends such a message where the shell does": [
    `git commit -m "$(cat <<'E'\na\nE\nrm -rf /\nE\n)"`,
    `git commit -m "$(cat <<E\na\nE\nrm -rf /\nE\n)"`,
  ],
  "keeps all beside a here-document": [`sh <<X\necho "rm -rf /"\nX`, `sh <<X\necho "rm -rf /"\nX`],
};
const hostile = [
  "a",
  " ",
  '"',
  "'",
  'echo "',
  "echo ",
  'echo "a"; ',
  "grep x ",
  "\\\n",
  '"a',
  "git commit -m 'x",
];

describe("the text of a shell command for rules", () => {
  it.each(Object.entries(cases))("%s", (_name, [command, text]) => {
    expect(toShellRuleText(command)).toBe(text);
  });

  it.each(hostile)("is made of 64 KiB of `%s` in linear time", (piece) => {
    const command = piece.repeat(Math.ceil(65_536 / piece.length));
    const startedMs = performance.now();
    toShellRuleText(command);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });
});
