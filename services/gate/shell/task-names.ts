import { toKnownName } from "./full-words.ts";
import type { ParsedCommand, SimpleCommand } from "./parsed-command.ts";

/** Programs whose operands name tasks that the workspace defines. */
const RUNS_TASKS =
  /^(?:make|gmake|nmake|ninja|just|task|rake|invoke|mage|earthly|gulp|grunt|npm|npx|pnpm|yarn|bun|bunx|composer|gradle|gradlew|mvn|mvnw|ant|sbt|lein|mix|nx|turbo|lerna|rush|tox|nox|hatch|pdm|poe|deno|bazel|pants|mise|cargo)$/;
/** Runners whose first word is the name of a package. */
const NAMES_PACKAGE = /^(?:npx|bunx)$/;
/** Verbs of their own that have such a name: rules of their own speak of those, and `pnpm deploy` only lays out a folder. */
const OWN_VERBS = /^(?:(?:npm|pnpm|deno|hatch|pdm) publish|pnpm deploy)$/;
const NAMES =
  "(?:(?:un|re)?deploy(?:ment)?|release|publish|promote|rollback|ship|prod|production|destroy|teardown|tear-down|down|nuke|wipe|purge|drop|reset-db|db-reset|upload|push)";
/** Names that say in front or at their end that what they stand for reaches beyond the workspace, or ends something. */
const REACHES_OUT = new RegExp(`^${NAMES}(?:$|[-_:.\\d])|[-_:./]${NAMES}\\d*$`, "i");

/** Whether a task or a script of the workspace runs whose name says that it releases, publishes or destroys something. */
export function namesRelease({ commands, opaque }: ParsedCommand): boolean {
  return (
    commands.some(runsRelease) ||
    opaque.some(({ files }) => files?.some((file) => REACHES_OUT.test(toBareName(file))) === true)
  );
}

function runsRelease({ program, argv }: SimpleCommand): boolean {
  if (!RUNS_TASKS.test(toKnownName(program))) return false;
  const [first] = argv;
  // Of its verbs those that the workspace defines.
  if (program === "cargo" && !(first?.kind === "literal" && /^(?:xtask|make|task)$/.test(first.text)))
    return false;
  const isOwn =
    first?.kind === "literal" && (NAMES_PACKAGE.test(program) || OWN_VERBS.test(`${program} ${first.text}`));
  const tasks = isOwn ? argv.slice(1) : argv;
  // What stands behind `--` is for the task.
  const end = tasks.findIndex((word) => word.kind === "literal" && word.text === "--");
  return tasks
    .slice(0, end === -1 ? tasks.length : end)
    .some(
      (word) =>
        word.kind === "literal" &&
        !/^(?:[-.]|\/(?!\/))|=|\.[a-z]{1,4}$/i.test(word.text) &&
        REACHES_OUT.test(word.text),
    );
}

/** `deploy` for `scripts/deploy.sh`. */
function toBareName(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}
