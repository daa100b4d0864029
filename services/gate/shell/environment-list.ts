import type { SimpleCommand, Word } from "./parsed-command.ts";

const toText = (word: Word): string => (word.kind === "literal" ? word.text : word.source);
const SECRET_NAME = /token|secret|passw|passphrase|api_?key|access_?key|private|credential|_auth/i;
/** Variables in which no secret stands. */
const PLAIN_NAME =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|PWD|LANG|LC_ALL|TERM|TZ|EDITOR|PAGER|NODE_ENV|GOPATH|GOROOT|JAVA_HOME|VIRTUAL_ENV|PYTHONPATH|NODE_PATH)$/;

/** Whether `printenv` prints nothing but variables in which no secret stands. */
export const printsPlainOnly = (words: readonly string[]): boolean =>
  words.length > 0 && words.every((word) => PLAIN_NAME.test(word));

/** Whether a command prints variables, or a state in which secrets stand: whole, or by a name that sounds like one. */
export function listsEnvironment({ program, argv }: SimpleCommand): boolean {
  const words = argv.map(toText);
  const line = words.join(" ");
  const names = words.filter((word) => !/^[-+]/.test(word));
  switch (program) {
    case "env":
      return listsByEnv(words);
    case "printenv":
      return !isQuery(words) && !printsPlainOnly(words);
    case "envsubst":
      return !isQuery(words);
    case "set":
      return words.length === 0;
    case "export":
    case "readonly":
    case "declare":
    case "typeset":
    case "local":
      return (
        (names.length === 0 && !words.some((word) => /^-\w*[fF]/.test(word))) ||
        (words.some((word) => /^-\w*p/.test(word)) && names.some((name) => SECRET_NAME.test(name)))
      );
    case "compgen":
      return words.some((word) => /^-\w*[ve]/.test(word) || /^(?:variable|export)$/.test(word));
    case "ps":
      return words.some(
        (word, at) =>
          /^(?!-)[a-zA-Z]*e[a-zA-Z]*$/.test(word) &&
          (at === 0 || !/^-[a-zA-Z]*[opuUCtgGsqO]$/.test(words[at - 1] ?? "")),
      );
    case "systemctl":
      return /(?:^| )show-environment(?: |$)/.test(line);
    case "jq":
    case "gojq":
    case "jaq":
      return words.some(
        (word, at) =>
          !/^--?arg/.test(words[at - 1] ?? "") &&
          /\$ENV\b|\$__prog_args|(?:^|[^.\w"'$])env(?![\w":])/.test(word) &&
          !/[/]/.test(word),
      );
    case "awk":
    case "gawk":
    case "mawk":
    case "nawk":
      return words.some((word) => /ENVIRON/.test(word));
    case "yq":
      return words.some((word) => /(?:str)?env(?:subst)?\s*\(|\$ENV|envsubst/.test(word));
    case "npm":
    case "pnpm":
    case "yarn":
      return (
        /(?:^| )(?:config|c) (?:get|ls|list)\b/.test(line) &&
        /auth|token|passw|(?:^| )(?:-l|--long|--json)(?: |$)/i.test(line)
      );
    case "terraform":
    case "tofu":
      return /(?:^| )(?:output\b.*-(?:json|raw)|state (?:pull|show)|show\b.*-json)/.test(line);
    case "docker":
    case "podman":
      return (
        /^(?:(?:container|compose) )?(?:inspect|config)(?: |$)/.test(line) ||
        /^(?:image )?inspect /.test(line)
      );
    case "docker-compose":
      return /^config(?: |$)/.test(line);
    case "make":
    case "gmake":
      return words.some((word) => /^(?:-[a-zA-Z]*p[a-zA-Z]*|--print-data-base)$/.test(word));
    case "cmake":
      return /^-E environment\b/.test(line);
    default:
      return false;
  }
}

const isQuery = (words: readonly string[]): boolean =>
  words.length > 0 && words.every((word) => /^(?:--help|--version|-V|-h)$/.test(word));

/** `env` with options and assignments alone. */
function listsByEnv(words: readonly string[]): boolean {
  if (isQuery(words)) return false;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (/^(?:-\w*S|--split-string)/.test(word)) return false;
    if (/^(?:-u|-C|--unset|--chdir)$/.test(word)) at += 1;
    else if (!word.startsWith("-") && !/^[A-Za-z_]\w*=/.test(word)) return false;
  }
  return true;
}

const AGENTS = /^(?:claude|codex|gemini|aider|cursor-agent|opencode|goose|amp|qwen|copilot|crush|droid)$/;

/** Whether a program is an agent, by its name. */
export const isAgent = (name: string): boolean => AGENTS.test(name);

/** Another agent: its hooks, rules and limits are those that it is started with. */
export const startsAgent = ({ program, argv }: SimpleCommand): boolean =>
  AGENTS.test(program) &&
  !(
    argv.length > 0 && argv.every((word) => /^(?:--version|--help|-v|-h|-V|doctor|help)$/.test(toText(word)))
  );
