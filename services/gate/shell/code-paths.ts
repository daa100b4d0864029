import type { Assignment, ParsedCommand, SimpleCommand } from "./parsed-command.ts";
import { CODE_PATHS } from "./variable-table.ts";

/** Programs that are no scripts: no variable makes them look for code. */
const NATIVE =
  /^(?:cat|head|tail|tee|grep|egrep|fgrep|rg|sed|sort|uniq|wc|cut|tr|ls|tree|pwd|mkdir|rmdir|rm|cp|mv|touch|chmod|date|sleep|seq|stat|basename|dirname|realpath|readlink|du|df|diff|cmp|comm|nl|tac|column|find|fd|jq|which|file|less|more|time|timeout|env|nice|nohup|xargs|test|true|false|make|gmake|ninja|cargo|go|gofmt|rustc|gcc|g\+\+|clang|cmake|git|curl|wget|psql|mysql|sqlite3|docker|podman|kubectl|gh|tar|gzip|gunzip|zip|unzip)$/;
/** Tools of a project, written in the language that the variable is for: what they find is what its tests would find. */
const PROJECT_TOOL =
  /^(?:black|ruff|isort|flake8|pylint|mypy|pyright|bandit|vulture|pydocstyle|pycodestyle|sphinx-build|mkdocs|coverage|alembic|flask|uvicorn|gunicorn|celery|eslint|prettier|tsc|rubocop|perltidy|perlcritic)$/;
const RUNS_CODE = /^(?:project_code|interpreter|shell|launcher)$/;

/**
 * Whether a variable by which code is found (`PYTHONPATH=.`) reaches a program that is not known to run code of the
 * workspace anyway, or one that runs in another folder: it would find the code of whoever wrote there.
 */
export function takesCodeByVariable(
  { commands, assignments }: ParsedCommand,
  isInside: (path: string) => boolean,
): boolean {
  const own = new Set(commands.flatMap((command) => command.assignments.filter(findsCode)));
  // What is set for the shell itself reaches every command of the text.
  const isForAll = assignments.some((one) => findsCode(one) && !own.has(one));
  let outer: SimpleCommand | undefined;
  return commands.some((command) => {
    if (outer !== undefined && command.wrappers.length <= outer.wrappers.length) outer = undefined;
    if (outer === undefined && command.assignments.some(findsCode)) outer = command;
    const isReached = isForAll || outer !== undefined;
    return isReached && command.where === "here" && !mayTake(command, isInside);
  });
}

const findsCode = ({ name }: Assignment): boolean => CODE_PATHS.test(name);

function mayTake(command: SimpleCommand, isInside: (path: string) => boolean): boolean {
  if (command.kind === "builtin" || NATIVE.test(command.program)) return true;
  const folders = command.folders ?? (command.cwd === undefined ? [] : [command.cwd]);
  return (
    (RUNS_CODE.test(command.risk) || PROJECT_TOOL.test(command.program)) &&
    folders.length > 0 &&
    folders.every(isInside)
  );
}
