import { beforeAll, describe, expect, it } from "vitest";
import { loadBashParser } from "./load-bash-parser.ts";
import { ORDINARY_VERBS } from "./ordinary-verbs.ts";
import { parseCommand } from "./parse-command.ts";
import type { BashParser } from "./syntax-tree.ts";
import { hasUnknownVerb } from "./unknown-verb.ts";

let parser: BashParser;
beforeAll(async () => {
  parser = await loadBashParser();
});
const asks = (text: string): boolean =>
  parseCommand(parser, text, { cwd: "/project" }).commands.some(hasUnknownVerb);

describe("a verb that no table names", () => {
  it.each(Object.keys(ORDINARY_VERBS).filter((name) => ORDINARY_VERBS[name]?.tasksBut === undefined))(
    "of %s is asked about, as is one that the text does not fix",
    (program) => {
      expect(asks(`${program} frobnicate`)).toBe(true);
      expect(asks(`${program} "$VERB"`)).toBe(true);
      expect(asks(`sudo ${program} frobnicate`)).toBe(true);
      expect(asks(`${program} --version`)).toBe(false);
    },
  );

  it.each(["yarn", "pnpm", "bun", "composer"])(
    "of %s is a task of the workspace, but for its own",
    (program) => {
      const [own] = ORDINARY_VERBS[program]?.tasksBut?.split(" ") ?? [];
      expect(asks(`${program} frobnicate`)).toBe(false);
      expect(asks(`${program} ${own ?? ""} frobnicate`)).toBe(true);
    },
  );

  it.each([
    "gh -R a/b pr view 1",
    "gh pr list --search frobnicate",
    "kubectl -n x --context y get pods",
    "aws --profile p ec2 describe-instances",
    "cargo +nightly build",
    "gcloud compute instances list",
    "python3 -m pip list",
    "git remote",
    "git -C sub status",
    "echo gh frobnicate",
    "ip -br a",
  ])("is not seen in %s", (text) => {
    expect(asks(text)).toBe(false);
  });

  it.each([
    "gh pr review 1 --approve",
    "gh pr review 1 -cab x",
    "gh pr review 1 $OPTIONS",
    "go env -w GOPROXY=x",
    "python -m pip config set a b",
    "gcloud compute frobnicate list",
    "aws ec2 frobnicate",
    "gh pr",
    "docker compose",
    "npm $EMPTY login",
  ])("is what makes %s asked about", (text) => {
    expect(asks(text)).toBe(true);
  });
});
