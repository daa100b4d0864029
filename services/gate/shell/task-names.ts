import { toKnownName } from "./full-words.ts";
import type { ParsedCommand, SimpleCommand } from "./parsed-command.ts";

/** Programs whose operands name tasks that the workspace defines. */
const RUNS_TASKS =
  /^(?:make|gmake|nmake|ninja|just|task|rake|invoke|mage|earthly|gulp|grunt|npm|npx|pnpm|yarn|bun|bunx|composer|gradle|gradlew|mvn|mvnw|ant|sbt|lein|mix|nx|turbo|lerna|rush|tox|nox|hatch|pdm|poe|deno|cargo|dotnet|bazel|pants)$/;
const HAS_VERBS = /^(?:npm|pnpm|npx|bunx|cargo|dotnet|deno|hatch|pdm|bazel|composer)$/;
/** Words of a name that say that it reaches beyond the workspace, or ends something. */
const REACHES_OUT =
  /(?:^|[-_:./\\])(?:(?:un|re)?deploy(?:ment)?|release|publish|promote|rollback|ship|prod|production|destroy|teardown|tear-down|down|nuke|wipe|purge|drop|reset-db|db-reset|upload|push)(?:$|[-_:./\\\d])/i;

/** Whether a task or a script of the workspace runs whose name says that it releases, publishes or destroys something. */
export function namesRelease({ commands, opaque }: ParsedCommand): boolean {
  return (
    commands.some(runsRelease) ||
    opaque.some(({ files }) => files?.some((file) => REACHES_OUT.test(lastName(file))) === true)
  );
}

function runsRelease({ program, argv }: SimpleCommand): boolean {
  if (!RUNS_TASKS.test(toKnownName(program))) return false;
  // Their own verbs stand first, and rules of their own speak of those.
  const [verb] = argv;
  const tasks = HAS_VERBS.test(program) && verb?.kind === "literal" ? argv.slice(1) : argv;
  return tasks.some(
    (word) =>
      word.kind === "literal" && !/^[-/.]|=|\.[a-z]{1,4}$/i.test(word.text) && REACHES_OUT.test(word.text),
  );
}

const lastName = (file: string): string => file.slice(file.lastIndexOf("/") + 1);
